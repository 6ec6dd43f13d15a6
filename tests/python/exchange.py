"""Exchanges device arrays of the embedded device with NumPy by DLPack, without copies.

Usage: exchange.py PATH_OF_libresident_python_exchange.so
"""

import re
import sys
from pathlib import Path

import numpy as np

from tensors import LIBRARY, Exported, sum_read_only, take_over

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

if is_versioned_known:
    # What NumPy marks as read-only is read, and not written.
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3).T
    numbers.flags.writeable = False
    assert np.isnan(take_over(numbers, "_versioned")), "it may not be written"
    assert sum_read_only(numbers) == 15
    assert sum_read_only(np.frombuffer(np.ones(5, np.float32).tobytes(), np.float32)) == 5
    assert numbers.tolist() == [[0, 3], [1, 4], [2, 5]]

    # The page of the guide, whose library is this one.
    guide = Path(__file__).parents[2] / "docs/guide/tensors_of_python.md"
    program = re.search("```python\n(.*?)```", guide.read_text(), re.DOTALL).group(1)
    scope = {}
    exec(program.replace("./libtables.so", sys.argv[1]), scope)
    table = scope.pop("table")
    assert np.shares_memory(table, np.from_dlpack(scope["Table"]())), "one memory is shared"
    assert sum_read_only(scope["Table"]()) == 3, "it comes back"
    LIBRARY.resident_forget()
    LIBRARY.resident_synchronize()
    assert LIBRARY.resident_bytes_in_use() == 24 and table.sum() == 3, "NumPy keeps the memory"
    del table
    LIBRARY.resident_synchronize()
    assert LIBRARY.resident_bytes_in_use() == 0
    print("shared read-only arrays with NumPy")
