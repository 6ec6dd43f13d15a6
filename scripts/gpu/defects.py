#!/usr/bin/env python3
"""Kernels with one known defect each: which of them the library's checker finds, and which
compute-sanitizer finds on a GPU.

usage: defects.py PROGRAM [--smoke] [--limit SECONDS]

PROGRAM is the suite `checked_kernels`. Prints a Markdown table of the kernels at which the two
differ, and how many each found. With --smoke no kernel runs on a GPU. Leaves with 1 if the library's
checker misses one.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import time

TOOLS = {
    "OutOfBounds": "memcheck",
    "Misaligned": "memcheck",
    "WriteToInput": "memcheck",
    "Uninitialised": "initcheck",
    "Race": "racecheck",
    "MissedBarrier": "synccheck",
}
# Of one kernel.
LIMIT_S = 20
WORKERS = 4


def run(command, place=None, limit_s=120):
    """What a program prints, and its exit code; `None` if it takes longer."""
    environment = dict(os.environ, RUST_BACKTRACE="0")
    environment.pop("RESIDENT_DEFECTS_ON", None)
    if place:
        environment["RESIDENT_DEFECTS_ON"] = place
    try:
        done = subprocess.run(
            command,
            env=environment,
            timeout=limit_s,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, "", None
    return done.returncode == 0, done.stdout.decode(errors="replace"), done.returncode


# The tests that have kernels with a defect, one for each file of them.
TESTS = ["every_", "--nocapture", "--test-threads", "1"]


def defects_of(program):
    """The kernels with a defect of which a tool may know, and its kind."""
    _, text, _ = run([program, *TESTS], "list")
    known = re.findall(r"defect: (\w+) (\w+)$", text, re.MULTILINE)
    return [(name, kind) for name, kind in known if kind in TOOLS]


def found_by_ours(program, names):
    """What the tests say: one that fails names the kernels that are not as they should be."""
    passes, text, _ = run([program, *TESTS])
    if "there is no C++ compiler" in text:
        return dict.fromkeys(names, "no C++ compiler")
    wrong = set(re.findall(r"^(\w+): ", text, re.MULTILINE))
    if not passes and not wrong & set(names):
        wrong.update(names)
    return {name: "missed" if name in wrong else "found" for name in names}


def found_by_sanitizer(program, name, kind, place, end):
    if time.monotonic() > end:
        return "no time"
    tool = ["compute-sanitizer", "--tool", TOOLS[kind], "--error-exitcode", "9"]
    _, text, code = run([*tool, program, *TESTS], place if place == "list" else f"{place}={name}", LIMIT_S)
    if code is None:
        return "not over"
    counts = re.findall(r"SUMMARY: (\d+) (?:error|hazard)", text)
    if any(int(count) > 0 for count in counts) or code == 9:
        return "found"
    return "missed" if counts or code == 0 else f"exit code {code}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--limit", type=float, default=130.0)
    arguments = parser.parse_args()
    end, program = time.monotonic() + arguments.limit, arguments.program
    known = defects_of(program)
    if not known:
        print(f"{program} has no kernels with defects")
        return 1
    if arguments.smoke:
        known = known[:4]
    place = "list" if arguments.smoke else os.environ.get("RESIDENT_DEVICE", "cuda:0")
    # Ours runs on the processors meanwhile.
    with concurrent.futures.ThreadPoolExecutor(WORKERS + 1) as pool:
        ours = pool.submit(found_by_ours, program, [name for name, _ in known])
        theirs = dict(
            zip(
                [name for name, _ in known],
                pool.map(lambda it: found_by_sanitizer(program, *it, place, end), known),
            )
        )
        ours = ours.result()
    report(known, ours, theirs)
    return 1 if "missed" in ours.values() else 0


def report(known, ours, theirs):
    print("### kernels with one defect each, by our checker and by compute-sanitizer\n")
    print("| defect | tool | kernels | ours found | compute-sanitizer found |\n|---|---|---|---|---|")
    for kind, tool in TOOLS.items():
        names = [name for name, its in known if its == kind]
        counts = [
            collections.Counter(found[name] for name in names)["found"] for found in (ours, theirs)
        ]
        if names:
            print(f"| {kind} | {tool} | {len(names)} | {counts[0]} | {counts[1]} |")
    print("\n| where they differ | defect | ours | compute-sanitizer |\n|---|---|---|---|")
    for name, kind in known:
        if ours[name] != theirs[name]:
            print(f"| {name} | {kind} | {ours[name]} | {theirs[name]} |")


if __name__ == "__main__":
    sys.exit(main())
