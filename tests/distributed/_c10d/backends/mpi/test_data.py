"""Tensors as MPI sees them."""
from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.distributed._c10d.backends.mpi import data


def test_memory_in_order_is_shared():
    x = torch.arange(6.0).view(2, 3)
    found = data.memory(x)
    found[0] = 5
    assert x[0, 0] == 5 and data.values(x) is not None
    assert data.memory(x.t()) is None and data.memory(torch.tensor([1j]).conj()) is None
    assert data.values(x.t()).tolist() == [5, 3, 1, 4, 2, 5]
    assert data.values(torch.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]


@pytest.mark.parametrize("in_order", [True, False])
def test_where_elements_are_written(in_order):
    x = torch.zeros(2, 3) if in_order else torch.zeros(3, 2).t()
    version = x._version
    target = data.Target(x)
    target.array[:] = np.arange(6)
    target.keep()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x._version > version
    assert data.Target(x, filled=True).array.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64,
                                   torch.float8_e4m3fn])
def test_bytes_and_back(dtype):
    x = torch.tensor([0.0, 1.0, 1.0]).to(dtype)
    back = data.as_tensor(data.values(x), x)
    assert back.dtype is dtype and torch.equal(back.to(torch.complex64), x.to(torch.complex64))
    assert data.as_tensor(data.values(x[:0]), x).shape == (0,)


def reduced(op, *values, dtype=torch.float32):
    parts = [torch.tensor(v).to(dtype) for v in values]
    data.reduce_into(parts[0], parts, op)
    return parts[0]


@pytest.mark.parametrize(("op", "wanted"), [
    ("SUM", [7, 6]), ("AVG", [7, 6]), ("PRODUCT", [8, 0]), ("MIN", [1, 0]), ("MAX", [4, 6])])
def test_reductions(op, wanted):
    assert reduced(op, [1, 6], [2, 0], [4, 0]).tolist() == wanted


def test_reductions_of_integers_and_truths():
    for op, wanted in (("BAND", 4), ("BOR", 7), ("BXOR", 3)):
        assert reduced(op, [6], [5], dtype=torch.int64).tolist() == [wanted]
    yes_no = ([True, True, False], [True, False, False])
    assert reduced("SUM", *yes_no, dtype=torch.bool).tolist() == [True, True, False]
    assert reduced("PRODUCT", *yes_no, dtype=torch.bool).tolist() == [True, False, False]


def test_halves_are_rounded_once():
    """256 + 0.5 + 0.5 is 256 when rounded each time."""
    assert reduced("SUM", [256.0], [0.5], [0.5], [1.0], dtype=torch.bfloat16).tolist() == [258]
    with_nan = reduced("MAX", [1.0], [float("nan")])
    assert with_nan.isnan().all()


def test_the_order_of_two_does_not_matter_to_where():
    parts = [torch.tensor([2.0]), torch.tensor([3.0])]
    data.reduce_into(parts[1], parts, "PRODUCT")
    assert parts[1].item() == 6 and parts[0].item() == 2


def test_means():
    x = torch.tensor([3.0, 5.0])
    data.divide(x, 2)
    assert x.tolist() == [1.5, 2.5]
