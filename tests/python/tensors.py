"""The library's tensors as objects of the DLPack protocol, for Python's libraries."""

import ctypes
import sys

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
LIBRARY.resident_sum_read_only.restype = ctypes.c_float
LIBRARY.resident_sum_read_only.argtypes = [ctypes.c_void_p]
LIBRARY.resident_bytes_in_use.restype = ctypes.c_uint64
LIBRARY.resident_use.restype = ctypes.c_bool
LIBRARY.resident_use.argtypes = [ctypes.c_char_p]
LIBRARY.resident_keep.restype = ctypes.c_uint64
LIBRARY.resident_keep.argtypes = [ctypes.c_bool]

# The numbers of kinds of devices in DLPack.
KINDS = {"cpu": 1, "cuda": 2, "hip": 10}

# The names must live as long as the capsules.
NAMES = {"": (b"dltensor", b"used_dltensor"), "_versioned": (b"dltensor_versioned", b"used_dltensor_versioned")}


class Exported:
    """An object with the methods of the DLPack protocol."""

    def __init__(self, suffix, is_column_major, kind="cpu"):
        self.suffix, self.is_column_major, self.kind = suffix, is_column_major, KINDS[kind]

    def __dlpack__(self, **_options):
        pointer = getattr(LIBRARY, "resident_export" + self.suffix)(self.is_column_major)
        assert pointer, "no tensor"
        return CAPSULES.PyCapsule_New(pointer, NAMES[self.suffix][0], None)

    def __dlpack_device__(self):
        return (self.kind, 0)


class Interface:
    """A table of the library with the fields of `__cuda_array_interface__`."""

    def __init__(self, is_column_major):
        address = LIBRARY.resident_keep(is_column_major)
        assert address, "no table"
        self.__cuda_array_interface__ = {
            "shape": (2, 3),
            "typestr": "<f4",
            "data": (address, False),
            "strides": (4, 8) if is_column_major else None,
            "version": 3,
        }


def take_over_interface(array):
    """As `take_over`, by the fields of `__cuda_array_interface__`."""
    fields = array.__cuda_array_interface__
    rows, columns = fields["shape"]
    imports = LIBRARY.resident_import_interface
    imports.restype = ctypes.c_float
    imports.argtypes = [ctypes.c_uint64, ctypes.c_size_t, ctypes.c_size_t]
    total = imports(fields["data"][0], rows, columns)
    LIBRARY.resident_synchronize()
    return total


def take_over(tensor, suffix):
    """Passes a tensor to the library, which doubles its elements; returns their sum."""
    return passed(tensor, suffix, getattr(LIBRARY, "resident_import" + suffix))


def sum_read_only(tensor):
    """Passes a tensor to the library, which only reads it; returns the sum of its elements."""
    return passed(tensor, "_versioned", LIBRARY.resident_sum_read_only)


def passed(tensor, suffix, function):
    """Passes a tensor to a function of the library; returns what that returns."""
    capsule = tensor.__dlpack__() if suffix == "" else tensor.__dlpack__(max_version=(1, 0))
    name, used = NAMES[suffix]
    pointer = CAPSULES.PyCapsule_GetPointer(capsule, name)
    CAPSULES.PyCapsule_SetName(capsule, used)
    total = function(pointer)
    LIBRARY.resident_synchronize()
    return total
