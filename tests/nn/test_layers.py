"""Every layer of the table against what PyTorch gave: weights, forward, gradients, repr, state."""

import copy
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from nn_cases import CASES, checksum, make_inputs, run, tensors_of

import flambeau

DATA = Path(__file__).resolve().parent.parent / "data" / "nn_layers.npz"


def load():
    """{case: {"repr", "init", "values": {name: array}}}."""
    with np.load(DATA) as file:
        pools = {"f": file["floats"], "i": file["ints"]}
        index = json.loads(bytes(file["index"]))
    start = {"f": 0, "i": 0}
    for entry in index.values():
        values = {}
        for name, kind, shape in entry["values"]:
            size = int(np.prod(shape))
            values[name] = pools[kind][start[kind]:start[kind] + size].reshape(shape)
            start[kind] += size
        entry["values"] = values
    return index


RECORDED = load()
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


def close(ours, theirs, name):
    np.testing.assert_allclose(
        ours.astype(np.float64), theirs.astype(np.float64), rtol=2e-4, atol=2e-5, err_msg=name
    )


def test_like_pytorch(case):
    expected = RECORDED[case.name]
    module, result = run(flambeau, case)
    assert repr(module) == expected["repr"]
    initial = {k[5:]: v for k, v in result.items() if k.startswith("init.")}
    assert list(initial) == list(expected["init"])
    for name, array in initial.items():
        shape, total, size = checksum(array)
        wanted = expected["init"][name]
        assert shape == wanted[0]
        assert [total, size] == pytest.approx(wanted[1:], rel=1e-5, abs=1e-5), name
    for name, theirs in expected["values"].items():
        ours = result[name]
        assert ours.shape == theirs.shape, name
        close(ours, theirs, name)


def make(case):
    flambeau.manual_seed(0)
    return case.make(flambeau)


def forward(module, case):
    flambeau.manual_seed(1)
    outputs = module(*make_inputs(flambeau, case), **case.call)
    return [out.detach().numpy() for out in tensors_of(flambeau, outputs)]


def same(first, second):
    assert len(first) == len(second)
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)


def test_state_dict_round_trip(case):
    module, other = make(case).eval(), case.make(flambeau).eval()
    assert str(other.load_state_dict(module.state_dict())) == "<All keys matched successfully>"
    same(forward(module, case), forward(other, case))


def test_copies(case):
    module = make(case).eval()
    twin = copy.deepcopy(module)
    assert repr(twin) == repr(module)
    theirs = {id(p) for p in module.parameters()}
    assert not any(id(p) in theirs for p in twin.parameters())
    same(forward(module, case), forward(twin, case))
    # Classes that the table makes inside a function cannot be pickled by name.
    if not any("<locals>" in type(m).__qualname__ for m in module.modules()):
        same(forward(module, case), forward(pickle.loads(pickle.dumps(module)), case))


def test_train_and_eval(case):
    module = make(case)
    assert module.training and all(m.training for m in module.modules())
    assert module.eval() is module
    assert not any(m.training for m in module.modules())


def test_double_precision(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = make(case).double()
    for tensor in module.state_dict().values():
        assert tensor.dtype == flambeau.float64 or not tensor.is_floating_point()
