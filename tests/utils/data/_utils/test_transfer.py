"""Objects with tensors in them, sent through a connection."""
import multiprocessing
import os

import numpy as np
import pytest

import flambeau
from flambeau.utils.data._utils import transfer


def sent(value):
    here, there = multiprocessing.Pipe()
    try:
        transfer.send(here, value)
        return transfer.receive(there)
    finally:
        here.close()
        there.close()


@pytest.mark.parametrize("n", [3, transfer.INLINE])      # through the connection, and a file
@pytest.mark.parametrize("dtype", [flambeau.float32, flambeau.bfloat16, flambeau.int64,
                                   flambeau.complex64, flambeau.bool])
def test_tensors(n, dtype):
    x = flambeau.arange(n).to(dtype)
    y = sent({"x": [x, 5]})["x"][0]
    assert y.dtype == dtype and flambeau.equal(x, y)
    y[0] = 1                      # its memory is its own
    assert not x[0]


def test_what_tensors_are():
    parameter = sent(flambeau.nn.Parameter(flambeau.ones(2), requires_grad=False))
    assert type(parameter) is flambeau.nn.Parameter and not parameter.requires_grad
    assert sent(flambeau.ones(2, requires_grad=True)).requires_grad
    view = sent(flambeau.arange(12.0).reshape(3, 4).t())
    assert flambeau.equal(view, flambeau.arange(12.0).reshape(3, 4).t())
    assert sent(flambeau.ones(3).to_sparse()).to_dense().tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which"):
        sent(flambeau.ones(2, requires_grad=True) * 2)


def test_files_are_gone_once_they_are_received():
    folder = transfer.shared_folder()
    if folder is None:
        pytest.skip("no folder of shared memory")
    array = sent(np.arange(transfer.INLINE))
    assert array[-1] == transfer.INLINE - 1
    assert not [f for f in os.listdir(folder) if f.startswith(transfer.prefix(os.getpid()))]
