"""Calls that PyTorch warns of give the same warnings: categories and texts."""
import importlib
import json
import warnings
from pathlib import Path

import numpy
import pytest

import flambeau

DATA = Path(__file__).parent / "data"
CALLS = (DATA / "warned_calls.txt").read_text().splitlines()
RECORDED = json.loads((DATA / "warned_calls.json").read_text())


@pytest.fixture
def every_time(monkeypatch):
    from flambeau.ops.sparse.tensors import Invariants
    monkeypatch.setattr(Invariants, "said", False)      # what other tests have chosen
    before = flambeau.is_warn_always_enabled()
    flambeau.set_warn_always(True)
    yield
    flambeau.set_warn_always(before)


@pytest.mark.parametrize("call, expected", zip(CALLS, RECORDED, strict=True))
def test_warnings_are_pytorch_s(call, expected, every_time):
    for name in ("ao.quantization", "masked", "nested", "utils.checkpoint"):
        importlib.import_module(f"flambeau.{name}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(call, {"torch": flambeau, "numpy": numpy})
    assert sorted([each.category.__name__, str(each.message).replace("flambeau", "torch")]
                  for each in caught) == expected


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "bsc"])
def test_compressed_layouts_are_in_beta_state(kind, every_time):
    blocks = ((1, 1),) if kind[0] == "b" else ()
    with pytest.warns(UserWarning, match=f"^Sparse {kind.upper()} tensor support is in beta"):
        getattr(flambeau.eye(2), f"to_sparse_{kind}")(*blocks)


def test_a_program_that_chooses_is_not_told_that_nothing_is_checked(every_time):
    switch = flambeau.sparse.check_sparse_tensor_invariants
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with switch(False):
            flambeau.sparse_coo_tensor([[0]], [1.0], (1,))
