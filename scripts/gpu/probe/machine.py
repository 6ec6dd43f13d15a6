"""The machine: its memory, processors and device."""

import ctypes
import mmap
import os
import pathlib
import statistics
import threading
import time
from ctypes import byref, c_int, c_size_t

from driver import LIBC, MIB, microseconds, rate

ATTRIBUTES = {
    "multiprocessors": 16,
    "integrated": 18,
    "can map host memory": 19,
    "copy engines": 40,
    "unified addressing": 41,
    "compute major": 75,
    "compute minor": 76,
    "managed memory": 83,
    "pageable memory access": 88,
    "compute preemption": 90,
    "host registration": 99,
    "memory pools": 115,
    "memory for reserved addresses": 102,
    "page tables of the host": 100,
    "read-only registration": 113,
    "host NUMA node": 134,
    "L2 bytes": 38,
    "memory clock kHz": 36,
}


def first_line(file, default="not there"):
    try:
        return pathlib.Path(file).read_text(encoding="utf-8").strip().splitlines()[0]
    except (OSError, IndexError):
        return default


def memory_of_host(_):
    wanted = (
        "MemTotal",
        "MemFree",
        "MemAvailable",
        "HugePages_Total",
        "AnonHugePages",
        "Hugepagesize",
    )
    lines = pathlib.Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    return ", ".join(" ".join(line.split()) for line in lines if line.split(":")[0] in wanted)


def huge_pages(_):
    folder = "/sys/kernel/mm/transparent_hugepage/"
    return f"enabled {first_line(folder + 'enabled')}; defrag {first_line(folder + 'defrag')}"


def limits_of_host(_):
    group = "/sys/fs/cgroup/"
    files = ", ".join(f"{name} {first_line(group + name)}" for name in ("cpu.max", "memory.max"))
    return f"processors {len(os.sched_getaffinity(0))}, {files}"


def attributes(probe):
    value, found = c_int(), []
    if probe.driver.is_hip:
        probe.driver.cuDriverGetVersion(byref(value))
        return f"HIP {value.value // 10_000_000}.{value.value // 100_000 % 100}"
    for name, number in ATTRIBUTES.items():
        code = probe.driver.code("cuDeviceGetAttribute", byref(value), number, probe.device)
        found.append(f"{name} {value.value if code == 0 else '-'}")
    probe.driver.cuDriverGetVersion(byref(value))
    return f"driver's CUDA {value.value}; " + ", ".join(found)


def memory_of_device(probe):
    free, total = c_size_t(), c_size_t()
    probe.driver.cuMemGetInfo(byref(free), byref(total))
    return f"{free.value // MIB} MiB free of {total.value // MIB}"


def address_of(memory):
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def host_memory(len_bytes, advice=None):
    """Fresh memory of the host, at a multiple of 2 MiB: what keeps it, and where it starts."""
    kept = mmap.mmap(-1, len_bytes + 2 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if advice is not None:
        kept.madvise(advice)
    return kept, -(-address_of(kept) // (2 * MIB)) * 2 * MIB


def copies_by_threads(probe):
    len_bytes, found = (4 * MIB if probe.is_smoke else 256 * MIB), []
    (_from, source), (_to, destination) = host_memory(len_bytes), host_memory(len_bytes)
    LIBC.memset(source, 1, len_bytes)
    LIBC.memset(destination, 1, len_bytes)
    for count in [
        count
        for count in (1, 2, 3, 4, 6, 8, 12, 15)
        if count == 1 or count <= len(os.sched_getaffinity(0))
    ]:
        share = len_bytes // count

        def turn(count=count, share=share):
            at = [index * share for index in range(count)]
            all_of_it = [
                threading.Thread(
                    target=LIBC.memcpy, args=(destination + start, source + start, share)
                )
                for start in at
            ]
            for thread in all_of_it:
                thread.start()
            for thread in all_of_it:
                thread.join()

        found.append(f"{count}: {rate(len_bytes, probe.timed(turn))}")
    return ", ".join(found)


def first_touch(probe):
    len_bytes, found = (4 * MIB if probe.is_smoke else 256 * MIB), []
    for name, advice in (
        ("pages of 4 KiB", mmap.MADV_NOHUGEPAGE),
        ("huge pages", mmap.MADV_HUGEPAGE),
    ):
        times = []
        for _ in range(min(3, probe.runs)):
            kept, start = host_memory(len_bytes, advice)
            before = time.perf_counter()
            LIBC.memset(start, 1, len_bytes)
            times.append(time.perf_counter() - before)
        found.append(f"{name} {rate(len_bytes, statistics.median(times))} GB/s")
    return ", ".join(found)


def wake_up(probe):
    """Half of a round trip of one byte between two sleeping threads."""
    (near_in, near_out), (far_in, far_out), count = os.pipe(), os.pipe(), probe.calls

    def echo():
        for _ in range(count * probe.runs):
            os.write(far_out, os.read(near_in, 1))

    thread = threading.Thread(target=echo)
    thread.start()

    def turn():
        for _ in range(count):
            os.write(near_out, b"x")
            os.read(far_in, 1)

    half_s = probe.timed(turn) / count / 2
    thread.join()
    for end in (near_in, near_out, far_in, far_out):
        os.close(end)
    return microseconds(half_s)
