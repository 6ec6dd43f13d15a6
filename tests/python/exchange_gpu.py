"""Exchanges device arrays of a GPU with CuPy and PyTorch, by DLPack and `__cuda_array_interface__`,
without copies.

Usage: exchange_gpu.py PATH_OF_libresident_python_exchange.so [DEVICE]

DEVICE is cuda:0, hip:0, or cpu, whose arrays NumPy takes. What is not installed, or shows no GPU,
is skipped; the last line begins with "skipped: " if nothing is left.
"""

import sys

from tensors import LIBRARY, Exported, Interface, take_over, take_over_interface

DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cuda:0"
KIND = DEVICE.split(":")[0]


def cupy_():
    import cupy

    if cupy.cuda.runtime.getDeviceCount() == 0:
        raise ImportError("CuPy shows no GPU")
    return {
        "name": f"CuPy {cupy.__version__}",
        "from_dlpack": cupy.from_dlpack,
        "from_interface": cupy.asarray,
        "make": lambda rows: cupy.array(rows, dtype=cupy.float32),
        "wait": cupy.cuda.runtime.deviceSynchronize,
    }


def torch_():
    import torch

    if not torch.cuda.is_available():
        raise ImportError("PyTorch shows no GPU")
    return {
        "name": f"PyTorch {torch.__version__}",
        "from_dlpack": torch.utils.dlpack.from_dlpack,
        "from_interface": lambda interface: torch.as_tensor(interface, device="cuda:0"),
        "make": lambda rows: torch.tensor(rows, device="cuda:0"),
        "wait": torch.cuda.synchronize,
    }


def numpy_():
    import numpy

    return {
        "name": f"NumPy {numpy.__version__}",
        "from_dlpack": numpy.from_dlpack,
        "from_interface": None,
        "make": lambda rows: numpy.array(rows, dtype=numpy.float32),
        "wait": lambda: None,
    }


def assert_table(table):
    assert tuple(table.shape) == (2, 3), table.shape
    assert table.tolist() == [[0, 1, 2], [3, 4, 5]], table


def to_python(library):
    for is_column_major in (False, True):
        table = library["from_dlpack"](Exported("", is_column_major, KIND))
        assert_table(table)
        assert LIBRARY.resident_bytes_in_use() >= 24
        del table
        library["wait"]()
        LIBRARY.resident_synchronize()
        assert LIBRARY.resident_bytes_in_use() == 0, "freed by the deleter call"
        if library["from_interface"] and KIND == "cuda":
            assert_table(library["from_interface"](Interface(is_column_major)))
            library["wait"]()
            LIBRARY.resident_forget()


def from_python(library):
    rows = [[1.0, 2, 3], [4, 5, 6]]
    numbers = library["make"](rows)
    library["wait"]()
    assert take_over(numbers, "") == 42
    assert numbers.tolist() == [[2, 4, 6], [8, 10, 12]], "the kernel wrote the other's memory"
    if library["from_interface"] and KIND == "cuda":
        assert take_over_interface(numbers) == 84
        assert numbers.tolist() == [[4, 8, 12], [16, 20, 24]], numbers


def main():
    if not LIBRARY.resident_use(DEVICE.encode()):
        print(f"{DEVICE} does not open")
        return 1
    done = 0
    for make in (numpy_,) if KIND == "cpu" else (cupy_, torch_):
        try:
            library = make()
        except Exception as fault:  # a library that is there may still not start
            print(f"not done: {make.__name__[:-1]}: {fault}")
            continue
        to_python(library)
        from_python(library)
        done += 1
        print(f"exchanged with {library['name']} on {DEVICE}")
    if done == 0:
        print("skipped: no library to exchange arrays with")
    return 0


if __name__ == "__main__":
    sys.exit(main())
