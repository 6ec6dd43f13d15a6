#!/usr/bin/env python3
"""What this machine's driver, link and memory cost by themselves.

usage: probe [--library FILE] [--hip [FILE]] [--json FILE] [--smoke] [--limit SECONDS]

  --library FILE   the driver [libcuda.so.1, or libamdhip64.so]
  --hip FILE       AMD's: the driver is HIP's, and this is hiprtc, which compiles kernels
                   [libhiprtc.so, else the driver]
  --json FILE      where to write the results, anew after each
  --smoke          tiny sizes and few runs
  --limit SECONDS  measure nothing more after this time [55]

Needs Python and a driver, and nothing of the library. Prints a Markdown table, a line as soon as
it is known. What the driver refuses or does not have is "not available". A time is the median of
runs; "net" means without what a call from Python costs. Leaves with 1 where there is no driver.
"""

import argparse
import ctypes
import json
import pathlib
import sys
import time

import calls
import copies
import machine
from driver import CALLS, RUNS, Driver, Missing, Probe

MACHINE = {
    "memory of the host": machine.memory_of_host,
    "huge pages": machine.huge_pages,
    "limits": machine.limits_of_host,
    "copies on the host by threads, GB/s": machine.copies_by_threads,
    "first touch": machine.first_touch,
    "waking a thread": machine.wake_up,
}
DRIVER = {
    "attributes": machine.attributes,
    "memory of the device": machine.memory_of_device,
    "a call from Python, taken off where it says net": calls.cost_of_python,
    "cuCtxGetCurrent, net": calls.get_current,
    "cuLaunchKernel, net": calls.launch,
    "launch and wait": calls.launch_and_wait,
    "events, net": calls.events,
    "made and destroyed": calls.new_and_gone,
    "allocated from the pool and freed": calls.pools,
    "commit and decommit of a page, ns": calls.pages,
    "cuMemHostAlloc, idle": calls.pinning_idle,
    "cuMemHostAlloc, beside a kernel of 20 ms": calls.pinning_busy,
    "registering 64 MiB": calls.registration,
    "two registrations on a page": calls.two_on_a_page,
    "pinned copies, GB/s up/down/both": copies.bandwidth,
    "small copies down, and wait": copies.small_copies,
    "2-D copies up, ns a row by width": copies.short_rows_up,
    "2-D copies down, ns a row by width": copies.short_rows_down,
    "2-D copies on the device that pack, ns a row by width": copies.short_rows_packed,
    "2-D copies on the device that unpack, ns a row by width": copies.short_rows_unpacked,
    "columns down, directly / packed on the device": copies.columns,
    "batch copies, by stream": copies.batches,
    "waiting for a kernel of 2 ms": calls.waits,
    "calls beside a capture": calls.beside_a_capture,
}


def outcome_of(measure, probe, end):
    if time.perf_counter() > end:
        return "not measured: no time was left"
    try:
        return measure(probe)
    except Missing as missing:
        return f"not available: {missing}"
    except Exception as fault:  # one measurement that goes wrong is told, and the others go on
        return f"not available: {type(fault).__name__}: {fault}"


def tell(results, file, name, value):
    results[name] = " ".join(value.split()).replace("|", "/")
    print(f"| {name} | {results[name]} |", flush=True)
    if file:
        pathlib.Path(file).write_text(
            json.dumps(results, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )


def driver_of(arguments):
    if arguments.hip is None:
        return Driver(arguments.library or "libcuda.so.1")
    runtime, compiler = arguments.library or "libamdhip64.so", arguments.hip
    if not compiler:
        try:
            ctypes.CDLL("libhiprtc.so")
            compiler = "libhiprtc.so"
        except OSError:
            compiler = runtime  # which has it before ROCm 6
    return Driver(runtime, compiler)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--library")
    parser.add_argument("--hip", nargs="?", const="")
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--limit", type=float, default=55.0)
    arguments = parser.parse_args()
    end, results = time.perf_counter() + arguments.limit, {}
    print("### probe\n\n| | |\n|---|---|")
    host = argparse.Namespace(
        is_smoke=arguments.smoke,
        calls=20 if arguments.smoke else CALLS,
        runs=3 if arguments.smoke else RUNS,
    )
    host.timed = lambda work: Probe.timed(host, work)
    try:
        probe, reason = Probe(driver_of(arguments), arguments.smoke, arguments.limit), None
    except (OSError, Missing) as fault:
        probe, reason = None, fault
    for name, measure in {**DRIVER, **MACHINE}.items() if probe else MACHINE.items():
        name = probe.driver.shown(name) if probe else name
        tell(results, arguments.json, name, outcome_of(measure, probe or host, end))
    if reason:
        tell(results, arguments.json, "driver", f"not available: {reason}")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    sys.exit(main())
