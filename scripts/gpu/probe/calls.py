"""What calls of the driver cost, and what it refuses beside a capture."""

import ctypes
import mmap
import statistics
import threading
import time
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

from driver import BLOCKING, KIB, LIBC, MIB, NO_TIMING, NON_BLOCKING, NOT_READY, microseconds
from machine import host_memory


def cost_of_python(probe):
    return f"{probe.python_s * 1e9:.0f} ns"


def get_current(probe):
    return probe.net("cuCtxGetCurrent", byref(c_void_p()))


def launch(probe):
    none = probe.net("cuLaunchKernel", *probe.launch_arguments(probe.kernel("nothing")))
    one = probe.net("cuLaunchKernel", *probe.launch_arguments(probe.kernel("address"), 0))
    return f"{none} without arguments, {one} with one"


def launch_and_wait(probe):
    arguments = probe.launch_arguments(probe.kernel("nothing"))

    def turn():
        probe.driver.cuLaunchKernel(*arguments)
        probe.driver.cuStreamSynchronize(probe.stream)

    return microseconds(probe.timed_20(turn))


def events(probe):
    event = probe.new_event()
    record, query = probe.net("cuEventRecord", event, probe.stream), probe.net(
        "cuEventQuery", event
    )
    wait = probe.net("cuStreamWaitEvent", probe.other, event, 0)
    idle = probe.net("cuStreamQuery", probe.stream)
    return f"record {record}, wait by another stream {wait}, query {query}; cuStreamQuery {idle}"


def new_and_gone(probe):
    def stream():
        probe.driver.cuStreamDestroy(probe.new_stream())

    def event():
        probe.driver.cuEventDestroy(probe.new_event())

    return f"stream {microseconds(probe.timed(stream))}, event {microseconds(probe.timed(event))}"


def pools(probe):
    pool, most, address = c_void_p(), c_uint64(2**64 - 1), c_uint64()
    probe.driver.cuDeviceGetDefaultMemPool(byref(pool), probe.device)
    probe.driver.cuMemPoolSetAttribute(pool, 4, byref(most))
    found = []
    for len_bytes in (4 * KIB, MIB, 64 * MIB):

        def turn(len_bytes=len_bytes):
            probe.driver.cuMemAllocAsync(byref(address), c_size_t(len_bytes), probe.stream)
            probe.driver.cuMemFreeAsync(address, probe.stream)

        turn()
        found.append(f"{len_bytes // KIB} KiB {microseconds(probe.timed_20(turn))}")
        probe.driver.cuStreamSynchronize(probe.stream)
    return ", ".join(found)


class Properties(ctypes.Structure):
    """`CUmemAllocationProp` of a device's memory."""

    _fields_ = [
        ("kind", c_int),
        ("handle_kinds", c_int),
        ("location_kind", c_int),
        ("location", c_int),
        ("security", c_void_p),
        ("flags", c_uint64),
    ]


def pages(probe):
    """The calls for a page of reserved addresses, and all of a commit and a decommit with memory
    that is kept; and with memory that is created and released."""
    properties, length = Properties(1, 0, 1, probe.device.value, None, 0), c_size_t()
    probe.driver.cuMemGetAllocationGranularity(byref(length), byref(properties), 0)
    address, memory = c_uint64(), c_uint64()
    zero, access = c_uint64(0), (c_int * 3)(1, probe.device.value, 3)

    def create():
        probe.driver.cuMemCreate(byref(memory), length, byref(properties), zero)

    def turn():
        probe.driver.cuMemMap(address, length, c_size_t(0), memory, zero)
        probe.driver.cuMemSetAccess(address, length, byref(access), c_size_t(1))
        probe.driver.cuMemUnmap(address, length)

    def turn_with_new_memory():
        create()
        turn()
        probe.driver.cuMemRelease(memory)

    probe.driver.cuMemAddressReserve(byref(address), length, c_size_t(0), zero, zero)
    create()
    kept = probe.timed_20(turn)
    probe.driver.cuMemRelease(memory)
    new = probe.timed_20(turn_with_new_memory)
    probe.driver.cuMemAddressFree(address, length)
    return f"{length.value // KIB} KiB: {kept * 1e9:.0f}, with new memory {new * 1e9:.0f}"


def pinning(probe, is_busy):
    """`cuMemHostAlloc` of several sizes, on an idle device or beside a kernel of 20 ms."""
    found = []
    for len_bytes in (64 * KIB, 4 * MIB) if probe.is_smoke else (64 * KIB, 4 * MIB, 64 * MIB):
        start, times = c_void_p(), []
        for _ in range(probe.runs):
            if is_busy:
                probe.spin(0.02)
            before = time.perf_counter()
            probe.driver.cuMemHostAlloc(byref(start), c_size_t(len_bytes), c_uint(1))
            times.append(time.perf_counter() - before)
            probe.driver.cuStreamSynchronize(probe.stream)
            probe.driver.cuMemFreeHost(start)
        found.append(f"{len_bytes // KIB} KiB {microseconds(statistics.median(times))}")
    return ", ".join(found)


def pinning_idle(probe):
    return pinning(probe, False)


def pinning_busy(probe):
    return pinning(probe, True)


def registration(probe):
    len_bytes, found = (MIB if probe.is_smoke else 64 * MIB), []
    for name, advice in (
        ("pages of 4 KiB", mmap.MADV_NOHUGEPAGE),
        ("huge pages", mmap.MADV_HUGEPAGE),
    ):
        kept, start = host_memory(len_bytes, advice)
        LIBC.memset(start, 1, len_bytes)
        times = [[], []]
        for _ in range(probe.runs):
            before = time.perf_counter()
            probe.driver.cuMemHostRegister(c_void_p(start), c_size_t(len_bytes), c_uint(1))
            between = time.perf_counter()
            probe.driver.cuMemHostUnregister(c_void_p(start))
            times[0].append(between - before)
            times[1].append(time.perf_counter() - between)
        on, off = map(statistics.median, times)
        found.append(f"{name} {microseconds(on)}, back {microseconds(off)}")
    return "; ".join(found)


def two_on_a_page(probe):
    _kept, start = host_memory(64 * KIB)
    LIBC.memset(start, 1, 64 * KIB)
    codes = [
        probe.driver.code("cuMemHostRegister", c_void_p(start + offset), c_size_t(1024), c_uint(1))
        for offset in (0, 1024)
    ]
    for offset in (0, 1024):
        probe.driver.code("cuMemHostUnregister", c_void_p(start + offset))
    return " then ".join(map(probe.driver.name_of, codes))


def waits(probe):
    """From the launch of a kernel of 2 ms to the return of three kinds of wait."""
    found = []
    for name, flags, polls in (
        ("polling", NO_TIMING, True),
        ("event", NO_TIMING, False),
        ("blocking event", NO_TIMING | BLOCKING, False),
    ):
        event = probe.new_event(flags)

        def turn(event=event, polls=polls):
            probe.spin(0.002)
            probe.driver.cuEventRecord(event, probe.stream)
            while polls and probe.driver.code("cuEventQuery", event) == NOT_READY:
                pass
            probe.driver.cuEventSynchronize(event)

        turn()
        found.append(f"{name} {microseconds(probe.timed(turn))}")
    return ", ".join(found)


def beside_a_capture(probe):
    """The codes of calls beside a global capture of another thread, in three modes, and `ended`
    where it ended the capture. Calls that always succeed are not listed."""
    driver, event, host, device = (
        probe.driver,
        probe.new_event(),
        probe.pinned(4096),
        probe.device_memory(4096),
    )
    driver.cuThreadExchangeStreamCaptureMode(byref(c_int(0)))
    driver.cuEventRecord(event, probe.other)
    driver.cuStreamSynchronize(probe.other)
    made, start, address = c_void_p(), c_void_p(), c_uint64()
    calls = {
        "cuEventQuery": (event,),
        "cuEventSynchronize": (event,),
        "cuEventRecord": (event, probe.other),
        "cuStreamQuery": (probe.other,),
        "cuStreamSynchronize": (probe.other,),
        "cuCtxSynchronize": (),
        "cuStreamCreate": (byref(made), NON_BLOCKING),
        "cuEventCreate": (byref(made), NO_TIMING),
        "cuMemAlloc": (byref(address), c_size_t(4096)),
        "cuMemAllocAsync": (byref(address), c_size_t(4096), probe.other),
        "cuMemHostAlloc": (byref(start), c_size_t(4096), c_uint(1)),
        "cuMemcpyHtoDAsync": (device, host, c_size_t(64), probe.other),
        "cuMemcpyHtoD": (device, host, c_size_t(64)),
        "cuModuleLoadData": (byref(made), driver.image()),
    }
    found = []
    for name, arguments in calls.items():
        outcomes = [one_beside_a_capture(probe, mode, name, arguments) for mode in (0, 1, 2)]
        if any(outcome != "0" for outcome in outcomes):
            found.append(f"{driver.shown(name)} {' / '.join(outcomes)}")
    return "global / per thread / relaxed: " + ("; ".join(found) or "nothing is refused")


def one_beside_a_capture(probe, mode, name, arguments):
    driver, graph, outcome = probe.driver, c_void_p(), []
    captured = probe.new_stream()
    driver.cuStreamBeginCapture(captured, 0)

    def other_thread():
        if driver.is_hip:
            driver.library.hipSetDevice(0)
        else:
            driver.code("cuCtxSetCurrent", probe.context)
        driver.code("cuThreadExchangeStreamCaptureMode", byref(c_int(mode)))
        outcome.append(str(driver.code(name, *arguments)))

    thread = threading.Thread(target=other_thread)
    thread.start()
    thread.join()
    code = driver.code("cuStreamEndCapture", captured, byref(graph))
    driver.code("cuStreamDestroy", captured)
    return outcome[0] + (" ended" if code != 0 else "")
