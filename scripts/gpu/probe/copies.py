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


def copy_of_rows(width, rows, source, destination):
    """Ends are a kind, an address and a pitch."""

    def fields(kind, address, pitch):
        return {"kind": kind, "host" if kind == HOST else "device": address, "pitch": pitch}

    of_source = {f"source_{name}": value for name, value in fields(*source).items()}
    return Copy2D(width=width, height=rows, **of_source, **fields(*destination))


def short_rows(probe, packed_kind, goes_up):
    """Nanoseconds a row, by width: packed memory and a matrix on the device."""
    rows, pitch = (64 if probe.is_smoke else 8192), 8192
    host, block = probe.pinned(rows * 4096), probe.device_memory(rows * 4096)
    device, found, width = probe.device_memory(rows * pitch), [], 4
    start = host.value if packed_kind == HOST else block.value
    while width <= 4096:
        ends = (packed_kind, start, width), (DEVICE, device.value, pitch)
        source, destination = ends if goes_up else ends[::-1]
        copy = copy_of_rows(width, rows, source, destination)
        took_s = probe.timed_on_device(
            lambda: probe.driver.cuMemcpy2DAsync(byref(copy), probe.stream)
        )
        found.append(f"{width}: {took_s / rows * 1e9:.1f}")
        width *= 4 if width < 16 else 2
    probe.driver.cuMemFreeHost(host)
    probe.driver.cuMemFree(block)
    probe.driver.cuMemFree(device)
    return ", ".join(found)


def short_rows_up(probe):
    return short_rows(probe, HOST, True)


def short_rows_down(probe):
    return short_rows(probe, HOST, False)


def short_rows_packed(probe):
    return short_rows(probe, DEVICE, False)


def short_rows_unpacked(probe):
    return short_rows(probe, DEVICE, True)


def columns(probe):
    """Columns of a matrix down, by width and number of rows: over the link, and by way of a block
    from the pool, which is packed on the device."""
    rows_most, pitch, block = (256 if probe.is_smoke else 65536), 1024, c_uint64()
    host, matrix, found = probe.pinned(rows_most * 64), probe.device_memory(rows_most * pitch), []
    driver, stream, at = probe.driver, probe.stream, (DEVICE, matrix.value, pitch)
    for width in (4, 16, 64):
        for rows in (rows_most // 16, rows_most):
            len_bytes = c_size_t(width * rows)

            def direct(width=width, rows=rows):
                copy = copy_of_rows(width, rows, at, (HOST, host.value, width))
                driver.cuMemcpy2DAsync(byref(copy), stream)

            def packed(width=width, rows=rows, len_bytes=len_bytes):
                driver.cuMemAllocAsync(byref(block), len_bytes, stream)
                copy = copy_of_rows(width, rows, at, (DEVICE, block.value, width))
                driver.cuMemcpy2DAsync(byref(copy), stream)
                driver.cuMemcpyDtoHAsync(host, block, len_bytes, stream)
                driver.cuMemFreeAsync(block, stream)

            times = [microseconds(probe.timed_on_device(way)) for way in (direct, packed)]
            found.append(f"{rows} rows of {width}: " + " / ".join(times))
    driver.cuMemFreeHost(host)
    driver.cuMemFree(matrix)
    return ", ".join(found)


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
