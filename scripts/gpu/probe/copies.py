"""Copies: large and small, of short rows, and in batches."""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

from driver import KIB, MIB, microseconds, rate

HOST, DEVICE = 1, 2


class Copy2D(ctypes.Structure):
    """`CUDA_MEMCPY2D`."""

    _fields_ = [
        ("source_x", c_size_t),
        ("source_y", c_size_t),
        ("source_kind", c_uint),
        ("source_host", c_void_p),
        ("source_device", c_uint64),
        ("source_array", c_void_p),
        ("source_pitch", c_size_t),
        ("x", c_size_t),
        ("y", c_size_t),
        ("kind", c_uint),
        ("host", c_void_p),
        ("device", c_uint64),
        ("array", c_void_p),
        ("pitch", c_size_t),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


class CopyAttributes(ctypes.Structure):
    """`CUmemcpyAttributes`."""

    _fields_ = [
        ("order", c_int),
        ("source", c_int * 2),
        ("destination", c_int * 2),
        ("flags", c_uint),
    ]


def bandwidth(probe):
    """GB/s of pieces one after another, an event after each: up, down, and both at once."""
    most = MIB if probe.is_smoke else 64 * MIB
    up, down = probe.pinned(most), probe.pinned(most)
    there, back = probe.device_memory(most), probe.device_memory(most)
    mark, other_mark, found, piece = probe.new_event(), probe.new_event(), [], MIB
    while piece <= most:
        count = max(1, (2 * most) // piece)

        def rise():
            probe.driver.cuMemcpyHtoDAsync(there, up, c_size_t(piece), probe.stream)
            probe.driver.cuEventRecord(mark, probe.stream)

        def fall():
            probe.driver.cuMemcpyDtoHAsync(down, back, c_size_t(piece), probe.other)
            probe.driver.cuEventRecord(other_mark, probe.other)

        def turn(*calls):
            for _ in range(count):
                for call in calls:
                    call()
            probe.driver.cuStreamSynchronize(probe.stream)
            probe.driver.cuStreamSynchronize(probe.other)

        len_bytes = count * piece
        times = [probe.timed(lambda: turn(*calls)) for calls in ((rise,), (fall,), (rise, fall))]
        found.append(
            f"{piece // MIB} MiB "
            + "/".join(
                [
                    rate(len_bytes, times[0]),
                    rate(len_bytes, times[1]),
                    rate(2 * len_bytes, times[2]),
                ]
            )
        )
        piece *= 2
    for start in (up, down):
        probe.driver.cuMemFreeHost(start)
    for address in (there, back):
        probe.driver.cuMemFree(address)
    return "; ".join(found)


def small_copies(probe):
    host, device = probe.pinned(64 * KIB), probe.device_memory(64 * KIB)
    found = []
    for len_bytes in (4, 4 * KIB, 64 * KIB):

        def turn(len_bytes=len_bytes):
            probe.driver.cuMemcpyDtoHAsync(host, device, c_size_t(len_bytes), probe.stream)
            probe.driver.cuStreamSynchronize(probe.stream)

        found.append(f"{len_bytes} bytes {microseconds(probe.timed_20(turn))}")
    return ", ".join(found)


def short_rows(probe, goes_up):
    """Nanoseconds a row, by width: packed pinned memory and a matrix on the device."""
    rows, pitch = (64 if probe.is_smoke else 8192), 8192
    host, device, found, width = probe.pinned(rows * 4096), probe.device_memory(rows * pitch), [], 4
    while width <= 4096:
        at_host = {"kind": HOST, "host": host, "pitch": width}
        at_device = {"kind": DEVICE, "device": device.value, "pitch": pitch}
        source, destination = (at_host, at_device) if goes_up else (at_device, at_host)
        fields = {**{f"source_{name}": value for name, value in source.items()}, **destination}
        copy = Copy2D(width=width, height=rows, **fields)
        took_s = probe.timed_on_device(
            lambda: probe.driver.cuMemcpy2DAsync(byref(copy), probe.stream)
        )
        found.append(f"{width}: {took_s / rows * 1e9:.1f}")
        width *= 4 if width < 16 else 2
    probe.driver.cuMemFreeHost(host)
    probe.driver.cuMemFree(device)
    return ", ".join(found)


def short_rows_up(probe):
    return short_rows(probe, True)


def short_rows_down(probe):
    return short_rows(probe, False)


def batch_code(probe, stream, pieces):
    host, device, first, refused = (
        probe.kept_host,
        probe.kept_device,
        c_size_t(0),
        c_size_t(2**64 - 1),
    )
    to = (c_uint64 * pieces)(*[device.value + 128 * index for index in range(pieces)])
    of = (c_uint64 * pieces)(*[host.value + 128 * index for index in range(pieces)])
    lens, attributes_ = (c_size_t * pieces)(*[64] * pieces), CopyAttributes(order=1)
    return probe.driver.code(
        "cuMemcpyBatchAsync",
        to,
        of,
        lens,
        c_size_t(pieces),
        byref(attributes_),
        byref(first),
        c_size_t(1),
        byref(refused),
        stream,
    )


def batches(probe):
    """Which streams batch copies are taken on, and nanoseconds a copy."""
    probe.kept_host, probe.kept_device = probe.pinned(64 * KIB), probe.device_memory(64 * KIB)
    streams = {
        "null": c_void_p(0),
        "legacy (1)": c_void_p(1),
        "per thread (2)": c_void_p(2),
        "own": probe.stream,
    }
    found = [
        f"{name} {probe.driver.name_of(batch_code(probe, stream, 4))}"
        for name, stream in streams.items()
    ]
    probe.driver.cuCtxSynchronize()
    took_s = probe.timed_on_device(lambda: batch_code(probe, probe.stream, 512))
    return ", ".join(found) + f"; {took_s / 512 * 1e9:.0f} ns a copy of 64 bytes"
