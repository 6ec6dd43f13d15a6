"""Exchanges device arrays of the embedded device with PyTorch's tensors by DLPack, without copies.

Usage: exchange_torch.py PATH_OF_libresident_python_exchange.so
"""

import math

import torch

from tensors import LIBRARY, Exported, take_over

for is_column_major in (False, True):
    table = torch.utils.dlpack.from_dlpack(Exported("", is_column_major))
    assert table.shape == (2, 3) and table.dtype == torch.float32, table
    assert table.tolist() == [[0, 1, 2], [3, 4, 5]], table
    assert table.stride() == ((1, 2) if is_column_major else (3, 1)), table.stride()
    table[0, 0] = 7
    assert LIBRARY.resident_bytes_in_use() >= 24
    view = table.t()[1:]
    del table
    LIBRARY.resident_synchronize()
    assert LIBRARY.resident_bytes_in_use() >= 24, "a view keeps the memory"
    del view
    LIBRARY.resident_synchronize()
    assert LIBRARY.resident_bytes_in_use() == 0, "freed by PyTorch's deleter call"

for numbers in (torch.tensor([[1.0, 2, 3], [4, 5, 6]]), torch.tensor([[1.0, 4], [2, 5], [3, 6]]).t()):
    assert take_over(numbers, "") == 42
    assert numbers.tolist() == [[2, 4, 6], [8, 10, 12]], "the kernel wrote PyTorch's memory"

# What cannot be taken over is refused, and given back.
doubles = torch.ones(3, dtype=torch.float64)
assert math.isnan(take_over(doubles, "")) and doubles.tolist() == [1, 1, 1]
gaps = torch.ones((4, 4))[:, ::2]
assert math.isnan(take_over(gaps, "")) and gaps.sum() == 8
print("exchanged with PyTorch", torch.__version__)
