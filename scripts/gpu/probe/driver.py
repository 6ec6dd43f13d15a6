"""The driver's functions, and what the measurements share: a context, streams, memory, clocks.

The measurements name functions as CUDA does. HIP mirrors them under other names."""

import ctypes
import re
import statistics
import time
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p

KIB, MIB = 1 << 10, 1 << 20
NOT_READY, NON_BLOCKING, NO_TIMING, BLOCKING = 600, 1, 2, 1
RUNS, CALLS = 9, 500
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.memcpy.argtypes = (c_void_p, c_void_p, c_size_t)
LIBC.memset.argtypes = (c_void_p, c_int, c_size_t)

# Kernels that do nothing, take an address, and run for so many nanoseconds.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
.visible .entry address(.param .u64 a) { ret; }
.visible .entry spin(.param .u64 duration)
{
    .reg .u64 %start, %now, %limit, %spent;
    .reg .pred %goes_on;
    ld.param.u64 %limit, [duration];
    mov.u64 %start, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %spent, %now, %start;
    setp.lt.u64 %goes_on, %spent, %limit;
    @%goes_on bra again;
    ret;
}
"""

# The functions of which C programs call the second version.
VERSION_2 = {
    "cuMemAlloc",
    "cuMemFree",
    "cuMemGetInfo",
    "cuMemHostRegister",
    "cuMemcpyHtoD",
    "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync",
    "cuMemcpy2DAsync",
    "cuStreamDestroy",
    "cuEventDestroy",
    "cuStreamBeginCapture",
}

# What HIP calls them, where more than the prefix differs. Without a counterpart: nothing.
HIP = {
    "cuCtxGetCurrent": "hipGetDevice",
    "cuCtxSynchronize": "hipDeviceSynchronize",
    "cuDriverGetVersion": "hipRuntimeGetVersion",
    "cuEventCreate": "hipEventCreateWithFlags",
    "cuLaunchKernel": "hipModuleLaunchKernel",
    "cuMemAlloc": "hipMalloc",
    "cuMemAllocAsync": "hipMallocAsync",
    "cuMemFree": "hipFree",
    "cuMemFreeAsync": "hipFreeAsync",
    "cuMemFreeHost": "hipHostFree",
    "cuMemHostAlloc": "hipHostMalloc",
    "cuMemHostRegister": "hipHostRegister",
    "cuMemHostUnregister": "hipHostUnregister",
    "cuStreamCreate": "hipStreamCreateWithFlags",
    "cuMemcpy2DAsync": "",
    "cuMemcpyBatchAsync": "",
    "cuDeviceGetAttribute": "",
}

# The kernels for AMD GPUs; `spin` takes a cycle for a nanosecond.
HIP_KERNELS = b"""
extern "C" __global__ void nothing() {}
extern "C" __global__ void address(unsigned long long) {}
extern "C" __global__ void spin(unsigned long long duration) {
    unsigned long long start = clock64();
    while (clock64() - start < duration) { }
}
"""


def code_object(compiler, architecture):
    """What hiprtc makes of the kernels."""
    library, program, size = ctypes.CDLL(compiler), c_void_p(), c_size_t()

    def call(name, *arguments):
        code = getattr(library, name)(*arguments)
        if code != 0:
            raise Missing(f"{name} returned {code}")

    options = (ctypes.c_char_p * 1)(b"--offload-arch=" + architecture)
    call("hiprtcCreateProgram", byref(program), HIP_KERNELS, b"probe.cu", 0, None, None)
    call("hiprtcCompileProgram", program, 1, options)
    call("hiprtcGetCodeSize", program, byref(size))
    code = ctypes.create_string_buffer(size.value)
    call("hiprtcGetCode", program, code)
    return code


class Missing(Exception):
    """What this driver does not have or refuses."""


class Driver:
    """The driver's functions by name; a code other than success is an exception."""

    def __init__(self, file, compiler=None):
        self.library, self.compiler = ctypes.CDLL(file), compiler
        self.is_hip = compiler is not None

    def shown(self, text):
        """A text with the driver's own names of functions."""
        if not self.is_hip:
            return text
        word = re.compile(r"\bcu[A-Z]\w+")
        return word.sub(lambda found: HIP.get(found[0]) or "hip" + found[0][2:], text)

    def function(self, name):
        if self.is_hip and HIP.get(name) == "":
            raise Missing(f"not measured with HIP ({name})")
        own = self.shown(name) if self.is_hip else name + ("_v2" if name in VERSION_2 else "")
        try:
            return getattr(self.library, own)
        except AttributeError:
            raise Missing(f"{own} is not in the driver") from None

    def image(self):
        """The kernels as a module."""
        if not self.is_hip:
            return PTX
        properties = ctypes.create_string_buffer(8192)
        try:
            ask, start = self.library.hipGetDevicePropertiesR0600, 1160
        except AttributeError:
            ask, start = self.library.hipGetDeviceProperties, 396
        if ask(properties, 0) != 0:
            raise Missing("hipGetDeviceProperties fails")
        return code_object(self.compiler, properties.raw[start:].split(b"\0")[0])

    def code(self, name, *arguments):
        return self.function(name)(*arguments)

    def name_of(self, code):
        text = ctypes.c_char_p()
        if self.is_hip:
            self.library.hipGetErrorName.restype = ctypes.c_char_p
            text.value = self.library.hipGetErrorName(code)
        else:
            self.function("cuGetErrorName")(code, byref(text))
        return f"{code} {(text.value or b'').decode()}".strip()

    def __getattr__(self, name):
        function = self.function(name)

        def call(*arguments):
            code = function(*arguments)
            if code != 0:
                raise Missing(f"{self.shown(name)} returned {self.name_of(code)}")

        return call


class Probe:
    """A context, a stream, and what the measurements share."""

    def __init__(self, driver, is_smoke, limit_s):
        self.driver, self.is_smoke, self.end = driver, is_smoke, time.perf_counter() + limit_s
        self.calls, self.runs = (20, 3) if is_smoke else (CALLS, RUNS)
        driver.cuInit(0)
        self.device, self.context, self.module = c_int(), c_void_p(), None
        driver.cuDeviceGet(byref(self.device), 0)
        if driver.is_hip:
            driver.library.hipSetDevice(0)
        else:
            driver.cuDevicePrimaryCtxRetain(byref(self.context), self.device)
            driver.cuCtxSetCurrent(self.context)
        self.stream, self.other = self.new_stream(), self.new_stream()
        self.python_s = self.per_call(LIBC.abs, c_int(1))

    def new_stream(self):
        stream = c_void_p()
        self.driver.cuStreamCreate(byref(stream), NON_BLOCKING)
        return stream

    def new_event(self, flags=NO_TIMING):
        event = c_void_p()
        self.driver.cuEventCreate(byref(event), flags)
        return event

    def device_memory(self, len_bytes):
        address = c_uint64()
        self.driver.cuMemAlloc(byref(address), c_size_t(len_bytes))
        return address

    def pinned(self, len_bytes):
        start = c_void_p()
        self.driver.cuMemHostAlloc(byref(start), c_size_t(len_bytes), c_uint(1))
        LIBC.memset(start, 1, len_bytes)
        return start

    def per_call(self, function, *arguments):
        """Seconds of one call, Python's loop included: the median of runs over many calls."""
        times = []
        for _ in range(self.runs):
            before = time.perf_counter()
            for _ in range(self.calls):
                function(*arguments)
            times.append((time.perf_counter() - before) / self.calls)
        return statistics.median(times)

    def net(self, name, *arguments):
        """The same of a driver call, net of Python's cost."""
        getattr(self.driver, name)(*arguments)
        total_s = self.per_call(self.driver.function(name), *arguments)
        self.driver.cuStreamSynchronize(self.stream)
        return f"{max(0.0, total_s - self.python_s) * 1e9:.0f} ns"

    def kernel(self, name):
        function = c_void_p()
        if self.module is None:
            # HIP reads the image as long as the module is loaded.
            self.module, self.image = c_void_p(), self.driver.image()
            self.driver.cuModuleLoadData(byref(self.module), self.image)
        self.driver.cuModuleGetFunction(byref(function), self.module, name.encode())
        return function

    def launch_arguments(self, kernel, value=None, stream=None):
        values = None
        if value is not None:
            self.kept = c_uint64(value)
            values = (c_void_p * 1)(ctypes.addressof(self.kept))
        return kernel, 1, 1, 1, 32, 1, 1, 0, stream or self.stream, values, None

    def spin(self, seconds, stream=None):
        self.driver.cuLaunchKernel(
            *self.launch_arguments(self.kernel("spin"), int(seconds * 1e9), stream)
        )

    def timed(self, work):
        """The median seconds of runs of this work."""
        times = []
        for _ in range(self.runs):
            before = time.perf_counter()
            work()
            times.append(time.perf_counter() - before)
        return statistics.median(times)

    def timed_20(self, work):
        """The same, of one of 20 in a row."""
        return self.timed(lambda: [work() for _ in range(20)]) / 20

    def timed_on_device(self, queue):
        """The median seconds between two events around what `queue` queues."""
        start, end, took, times = self.new_event(0), self.new_event(0), c_float(), []
        for _ in range(self.runs):
            self.driver.cuEventRecord(start, self.stream)
            queue()
            self.driver.cuEventRecord(end, self.stream)
            self.driver.cuStreamSynchronize(self.stream)
            self.driver.cuEventElapsedTime(byref(took), start, end)
            times.append(took.value / 1e3)
        return statistics.median(times)


def microseconds(seconds):
    return f"{seconds * 1e6:.1f} µs"


def rate(len_bytes, seconds):
    return f"{len_bytes / seconds / 1e9:.1f}" if seconds > 0 else "-"
