#!/usr/bin/env python3
"""Writes `answers.txt`: which uses of a name NVRTC refuses, of all names that the headers of this
machine have. A name that it does not know is left out. And `calls.txt`: what each function of the
first column returns for arguments of each type (`TYPES`), or of each pair of types: a letter, or a
dash where NVRTC refuses the call.

    answers.py <path of libnvrtc.so.13>
"""

import ctypes
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

FOLDER = Path(__file__).parent
BATCH_LEN = 80

# The types of arguments, and a letter for each type of a result.
TYPES = ["int", "unsigned int", "long", "unsigned long long", "float", "double", "bool", "char"]
LETTERS = {
    "int": "i",
    "unsigned int": "u",
    "long": "l",
    "unsigned long": "m",
    "long long": "q",
    "unsigned long long": "t",
    "float": "f",
    "double": "d",
    "bool": "b",
}
OF_ONE = """
    abs acos acosf acosh asin asinh atan atanh cbrt ceil cos cosh cospi erf erfc exp exp10
    exp2 expm1 fabs fabsf floor ilogb isfinite isinf isnan j0 j1 labs lgamma llabs llrint
    llround log log10 log1p log2 logb lrint lround nearbyint rcbrt rint round rsqrt signbit
    sin sinf sinh sinpi sqrt sqrtf tan tanh tgamma trunc y0 y1
""".split()
OF_TWO = """
    atan2 copysign fdim fmax fmin fmod fmodf hypot jn ldexp max min nextafter pow powf
    remainder scalbln scalbn yn
""".split()


class Nvrtc:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)

    def log(self, text):
        """What it says of a source; None if it takes it."""
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.library.nvrtcCreateProgram(
            ctypes.byref(program), text.encode(), b"k.cu", 0, None, None
        )
        options = (ctypes.c_char_p * 2)(b"--gpu-architecture=compute_90", b"--std=c++17")
        result = self.library.nvrtcCompileProgram(program, 2, options)
        self.library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.library.nvrtcGetProgramLog(program, log)
        self.library.nvrtcDestroyProgram(ctypes.byref(program))
        return log.value.decode() if result else None


def uses():
    """The lines of `uses.txt`: a letter, and what uses a name."""
    for line in (FOLDER / "uses.txt").read_text().splitlines():
        letter, text = line.split(" ", 1)
        yield letter, text


def refused(nvrtc, use, names):
    """Those of some names of which it refuses this use. An error may hide others or make some."""
    found, left = set(), list(names)
    while left:
        numbered = enumerate(left)
        lines = [use.replace("NAME", name).replace("$", str(at)) for at, name in numbered]
        log = nvrtc.log("\n".join(lines))
        if log is None:
            break
        numbers = {int(line) for line in re.findall(r"^k\.cu\((\d+)\): error", log, re.M)}
        wrong = {left[number - 1] for number in numbers}
        assert wrong, log
        found |= wrong
        left = [name for name in left if name not in wrong]
    return {name for name in found if nvrtc.log(use.replace("NAME", name).replace("$", "0"))}
    return found


def call(function, types):
    return f"{function}({', '.join(f'({kind})1' for kind in types)})"


SAME = """template <typename T, typename U> struct same { typedef int no; };
template <typename T> struct same<T, T> { typedef int yes; };
"""


def results(nvrtc, function, count):
    """A letter for each call of a function with so many arguments."""
    calls = [call(function, types) for types in product(TYPES, repeat=count)]
    found = []
    # After 100 errors it says no more.
    for start in range(0, len(calls), len(TYPES)):
        batch = calls[start : start + len(TYPES)]
        letters = ["-"] * len(batch)
        for kind, letter in LETTERS.items():
            line = f"__device__ same<decltype(CALL), {kind}>::yes n_"
            lines = [f"{line.replace('CALL', one)}{at};" for at, one in enumerate(batch)]
            log = nvrtc.log(SAME + "\n".join(lines)) or ""
            wrong = {int(line) - 3 for line in re.findall(r"^k\.cu\((\d+)\): error", log, re.M)}
            letters = [old if at in wrong else letter for at, old in enumerate(letters)]
        found += letters
    return "".join(found)


def names_of_machine():
    """The words of C's and C++'s headers, without those that are reserved."""
    headers = [f"#include <{name}>" for name in (FOLDER / "headers.txt").read_text().split()]
    given = {"input": "\n".join(headers), "capture_output": True, "text": True, "check": True}
    text = subprocess.run(["c++", "-std=c++17", "-E", "-P", "-x", "c++", "-"], **given).stdout
    macros = subprocess.run(["c++", "-std=c++17", "-dM", "-E", "-x", "c++", "-"], **given).stdout
    words = re.findall(r"\b[A-Za-z]\w*\b", text) + re.findall(r"#define ([A-Za-z]\w*)", macros)
    return set(words)


def main():
    nvrtc = Nvrtc(sys.argv[1])
    keywords = set((FOLDER / "keywords.txt").read_text().split())
    names = names_of_machine()
    names = sorted(names - keywords)
    answers = {name: "" for name in names}
    for letter, use in uses():
        for start in range(0, len(names), BATCH_LEN):
            for name in refused(nvrtc, use, names[start : start + BATCH_LEN]):
                answers[name] += letter
    known = [f"{name} {letters}\n" for name, letters in answers.items() if letters]
    (FOLDER / "answers.txt").write_text("".join(known))
    counts = [(OF_ONE, 1), (OF_TWO, 2)]
    calls = [(one, results(nvrtc, one, count)) for names, count in counts for one in names]
    (FOLDER / "calls.txt").write_text("".join(f"{one} {letters}\n" for one, letters in calls))
    print(f"{len(names)} names, of which NVRTC knows {len(known)}")


main()
