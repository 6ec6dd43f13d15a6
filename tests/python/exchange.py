"""Exchanges device arrays of the embedded device with NumPy by DLPack, without copies.

Usage: exchange.py PATH_OF_libresident_python_exchange.so
"""

import numpy as np

from tensors import LIBRARY, Exported, take_over

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
