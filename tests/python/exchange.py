"""Exchanges device arrays of the embedded device with NumPy by DLPack, without copies.

Usage: exchange.py PATH_OF_libresident_python_exchange.so
"""

import ctypes
import sys

import numpy as np

LIBRARY = ctypes.CDLL(sys.argv[1])
CAPSULES = ctypes.pythonapi
CAPSULES.PyCapsule_New.restype = ctypes.py_object
CAPSULES.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
CAPSULES.PyCapsule_GetPointer.restype = ctypes.c_void_p
CAPSULES.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
CAPSULES.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
for suffix in ("", "_versioned"):
    getattr(LIBRARY, "resident_export" + suffix).restype = ctypes.c_void_p
    getattr(LIBRARY, "resident_export" + suffix).argtypes = [ctypes.c_bool]
    getattr(LIBRARY, "resident_import" + suffix).restype = ctypes.c_float
    getattr(LIBRARY, "resident_import" + suffix).argtypes = [ctypes.c_void_p]
LIBRARY.resident_bytes_in_use.restype = ctypes.c_uint64

# The names must live as long as the capsules.
NAMES = {"": (b"dltensor", b"used_dltensor"), "_versioned": (b"dltensor_versioned", b"used_dltensor_versioned")}


class Exported:
    """An object with the methods of the DLPack protocol."""

    def __init__(self, suffix, is_column_major):
        self.suffix, self.is_column_major = suffix, is_column_major

    def __dlpack__(self, **_options):
        pointer = getattr(LIBRARY, "resident_export" + self.suffix)(self.is_column_major)
        assert pointer, "no tensor"
        return CAPSULES.PyCapsule_New(pointer, NAMES[self.suffix][0], None)

    def __dlpack_device__(self):
        return (1, 0)


def take_over(array, suffix):
    """Passes NumPy's array to the library, which doubles its elements; returns their sum."""
    capsule = array.__dlpack__() if suffix == "" else array.__dlpack__(max_version=(1, 0))
    name, used = NAMES[suffix]
    pointer = CAPSULES.PyCapsule_GetPointer(capsule, name)
    CAPSULES.PyCapsule_SetName(capsule, used)
    total = getattr(LIBRARY, "resident_import" + suffix)(pointer)
    LIBRARY.resident_synchronize()
    return total


is_versioned_known = tuple(int(part) for part in np.__version__.split(".")[:2]) >= (2, 1)
for suffix in ("", "_versioned") if is_versioned_known else ("",):
    for is_column_major in (False, True):
        table = np.from_dlpack(Exported(suffix, is_column_major))
        assert table.shape == (2, 3) and table.dtype == np.float32, table
        assert table.tolist() == [[0, 1, 2], [3, 4, 5]], table
        assert table.flags["F_CONTIGUOUS"] == is_column_major, table.strides
        assert LIBRARY.resident_bytes_in_use() >= 24
        del table
        LIBRARY.resident_synchronize()
        assert LIBRARY.resident_bytes_in_use() == 0, "freed by NumPy's deleter call"
    for order in ("C", "F"):
        numbers = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32, order=order)
        assert take_over(numbers, suffix) == 42
        assert numbers.tolist() == [[2, 4, 6], [8, 10, 12]], "the kernel wrote NumPy's memory"
    # What cannot be taken over is refused, and given back.
    doubles = np.ones(3, dtype=np.float64)
    assert np.isnan(take_over(doubles, suffix)) and doubles.tolist() == [1, 1, 1]
    gaps = np.ones((4, 4), dtype=np.float32)[:, ::2]
    assert np.isnan(take_over(gaps, suffix)) and gaps.sum() == 8
    print("exchanged with NumPy", np.__version__, suffix or "legacy")
