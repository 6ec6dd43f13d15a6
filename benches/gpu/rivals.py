#!/usr/bin/env python3
"""The pipeline and conjugate gradient of the benchmarks in Python, with CuPy and with Numba, on the same kernels.

usage: rivals.py [--beside FOLDER] [--json FILE] [--smoke] [--limit SECONDS]

  --beside FOLDER  where pipeline.json and conjugate_gradient.json are, which `gpu --json` wrote: ratios to these are printed
  --json FILE      where to write the figures
  --smoke          tiny sizes and few runs
  --limit SECONDS  time of each case [8]

Prints a Markdown table. What is not installed, and everything where there is no GPU, is skipped, and said so; leaves with 1 if a rival that is there
fails or computes something else.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

try:
    import numpy
except ImportError:
    numpy = None  # nothing of the rivals is there either: both need it

try:
    from numba import cuda

    NUMBA_MISSING = None
except ImportError as fault:
    NUMBA_MISSING = fault

KERNELS = 50
THREADS = 256
PARTS = 256
WARM_UP = 3
RUNS = 25
RUNS_MIN = 3
STEPS_PER_LOOK = 10
STEPS_MAX = 20_000
REDUCTION = 1e-6


class Skipped(Exception):
    """A rival that this machine does not have."""


def blocks(length):
    return (length + THREADS - 1) // THREADS


def check(first):
    """Each kernel of the pipeline halves the distance to 1."""
    if float(first) != 1.0:
        raise ArithmeticError(f"the chain came to {first} instead of 1")


# CuPy: the source of the Rust benchmarks, pinned memory from its pool.


def cupy_kernels():
    try:
        import cupy
        import cupyx
    except ImportError as fault:
        raise Skipped(f"not installed: {fault}") from fault
    try:
        if cupy.cuda.runtime.getDeviceCount() == 0:
            raise Skipped("no GPU")
    except cupy.cuda.runtime.CUDARuntimeError as fault:
        raise Skipped(f"no GPU: {fault}") from fault
    text = pathlib.Path(__file__).with_name("kernels.cu").read_text(encoding="utf-8")
    return cupy, cupyx, lambda name: cupy.RawKernel(text, name, backend="nvrtc")


def cupy_pipeline(length):
    cupy, cupyx, kernel = cupy_kernels()
    affine, stream = kernel("affine"), cupy.cuda.Stream(non_blocking=True)
    half, count = numpy.float32(0.5), numpy.uint64(length)
    host = cupyx.empty_pinned(length, dtype=numpy.float32)
    host.fill(1)
    grid, block = (blocks(length),), (THREADS,)

    def turn():
        host[0] += 7
        with stream:
            x, y = cupy.empty(length, dtype=cupy.float32), cupy.empty(length, dtype=cupy.float32)
            x.set(host, stream=stream)
            for _ in range(KERNELS // 2):
                affine(grid, block, (half, half, x, y, count))
                affine(grid, block, (half, half, y, x, count))
            x.get(stream=stream, out=host, blocking=False)
        stream.synchronize()
        check(host[0])

    return turn


def cupy_conjugate_gradient(side):
    cupy, _, kernel = cupy_kernels()
    laplace, partial_dot, finish_dot = kernel("laplace"), kernel("partial_dot"), kernel("finish_dot")
    advance, redirect, stream = kernel("advance"), kernel("redirect"), cupy.cuda.Stream(non_blocking=True)
    length = side * side
    count, edge, grid, block = numpy.uint64(length), numpy.uint64(side), (blocks(length),), (THREADS,)

    def dot(a, b, parts, result):
        partial_dot((PARTS,), block, (a, b, parts, count))
        finish_dot((1,), block, (parts, result))

    def solve():
        with stream:
            x, r, p = cupy.zeros(length), cupy.ones(length), cupy.ones(length)
            ap, parts = cupy.empty(length), cupy.empty(PARTS)
            rr, rr_new, pap = cupy.empty(1), cupy.empty(1), cupy.empty(1)
            dot(r, r, parts, rr)
            start = float(rr[0])
            for step in range(1, STEPS_MAX + 1):
                laplace(grid, block, (p, ap, edge))
                dot(p, ap, parts, pap)
                advance(grid, block, (x, r, p, ap, rr, pap, count))
                dot(r, r, parts, rr_new)
                redirect(grid, block, (p, r, rr_new, rr, count))
                rr, rr_new = rr_new, rr
                if step % STEPS_PER_LOOK == 0 and float(rr[0]) <= REDUCTION**2 * start:
                    return
        raise ArithmeticError(f"{STEPS_MAX} steps were not enough")

    return solve


# Numba: its own kernel of the same arithmetic. Given arrays of the host it copies each argument in and out at each launch.


def numba_kernel():
    if NUMBA_MISSING:
        raise Skipped(f"not installed: {NUMBA_MISSING}")
    if not cuda.is_available():
        raise Skipped("no GPU, or no driver that Numba takes")

    @cuda.jit("void(float32, float32, float32[::1], float32[::1])")
    def affine(factor, offset, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = factor * x[i] + offset

    return affine


def numba_device_arrays(length):
    affine = numba_kernel()
    stream, host = cuda.stream(), cuda.pinned_array(length, dtype=numpy.float32)
    host.fill(1)
    x, y = cuda.device_array(length, numpy.float32), cuda.device_array(length, numpy.float32)
    launch = affine[blocks(length), THREADS, stream]

    def turn():
        host[0] += 7
        x.copy_to_device(host, stream=stream)
        for _ in range(KERNELS // 2):
            launch(0.5, 0.5, x, y)
            launch(0.5, 0.5, y, x)
        x.copy_to_host(host, stream=stream)
        stream.synchronize()
        check(host[0])

    return turn


def numba_host_arrays(length):
    affine = numba_kernel()
    x, y = numpy.ones(length, numpy.float32), numpy.empty(length, numpy.float32)
    launch = affine[blocks(length), THREADS]

    def turn():
        x[0] += 7
        for _ in range(KERNELS // 2):
            launch(0.5, 0.5, x, y)
            launch(0.5, 0.5, y, x)
        check(x[0])

    return turn


def measure(make, times, limit_s, wanted):
    """The median time of `times` turns, in seconds, and of how many runs."""
    turn, runs, started = make(), [], time.perf_counter()
    for run in range(WARM_UP + wanted):
        elapsed = time.perf_counter() - started
        if len(runs) >= RUNS_MIN and elapsed > limit_s:
            break
        if 0 < run < WARM_UP and elapsed > limit_s / 3:
            continue
        before = time.perf_counter()
        for _ in range(times):
            turn()
        if run >= WARM_UP:
            runs.append((time.perf_counter() - before) / times)
    return statistics.median(runs), len(runs)


def cases(is_smoke):
    large, small, side = (4096, 1024, 24) if is_smoke else ((256 << 20) // 4, (1 << 20) // 4, 1024)
    times = 3 if is_smoke else 200
    for what, length, repeat in [("256 MiB", large, 1), ("1 MiB, 200 times", small, times)]:
        work = f"{KERNELS} kernels over {what}"
        yield "pipeline", work, 4 * length, "CuPy, RawKernel, pinned pool", lambda length=length: cupy_pipeline(length), repeat
        yield "pipeline", work, 4 * length, "Numba, device arrays, pinned", lambda length=length: numba_device_arrays(length), repeat
    yield "conjugate_gradient", f"{side} x {side} unknowns", None, "CuPy, RawKernel", lambda: cupy_conjugate_gradient(side), 1
    # Last, since a turn over 256 MiB takes seconds: every launch copies in and out.
    for what, length in [("1 MiB, 200 times", small), ("256 MiB", large)]:
        yield "pipeline", f"{KERNELS} kernels over {what}", 4 * length, "Numba, host arrays", lambda length=length: numba_host_arrays(length), 1


def size_text(len_bytes):
    return f"{len_bytes >> 20} MiB" if len_bytes >= 1 << 20 else f"{len_bytes >> 10} KiB"


def ours_beside(folder, row, len_bytes):
    """What the Rust benchmark measured of the same work, in seconds, or nothing."""
    path = pathlib.Path(folder or "") / f"{row}.json"
    if folder is None or not path.is_file():
        return None
    (report,) = json.loads(path.read_text(encoding="utf-8"))["rows"]
    for line in report["lines"]:
        is_it = len_bytes is None or f"over {size_text(len_bytes)}: ours, pinned" in line["work"]
        if is_it and "median_s" in line["ours"]:
            return line["ours"]["median_s"]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside")
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--limit", type=float, default=8.0)
    arguments = parser.parse_args()
    wanted, lines, has_failed = (3 if arguments.smoke else RUNS), [], False
    print("### rivals in Python\n\n| work | rival | rival's | ours | ours / rival's |\n|---|---|---|---|---|")
    for row, work, len_bytes, rival, make, times in cases(arguments.smoke):
        line = {"row": row, "work": work, "rival": rival, "ours_s": ours_beside(arguments.beside, row, len_bytes)}
        try:
            line["median_s"], line["runs"] = measure(make, times, arguments.limit, wanted)
        except Skipped as reason:
            line["not_measured"] = f"skipped, {reason}"
        except Exception as fault:  # whatever a rival raises is told, and the others go on
            line["not_measured"], has_failed = f"failed, {type(fault).__name__}: {fault}", True
        lines.append(line)
        print(markdown(line, arguments.smoke), flush=True)
        if arguments.json:  # after each, for a run that is ended
            pathlib.Path(arguments.json).write_text(json.dumps({"smoke": arguments.smoke, "rivals": lines}) + "\n", encoding="utf-8")
    return 1 if has_failed else 0


def markdown(line, is_smoke):
    if "not_measured" in line:
        theirs, ratio = " ".join(line["not_measured"].split()).replace("|", "\\|"), ""
    elif is_smoke:
        theirs, ratio = f"ran {line['runs']} times", ""
    else:
        few = f" ({line['runs']} runs)" if line["runs"] < 20 else ""
        theirs, ratio = f"{line['median_s'] * 1e3:.3f} ms{few}", f"{line['ours_s'] / line['median_s']:.3f}" if line["ours_s"] else ""
    ours = f"{line['ours_s'] * 1e3:.3f} ms" if line["ours_s"] and not is_smoke else ""
    return f"| {line['work']} | {line['rival']} | {theirs} | {ours} | {ratio} |"


if __name__ == "__main__":
    sys.exit(main())
