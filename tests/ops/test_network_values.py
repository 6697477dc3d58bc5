"""Functions of neural networks: values and gradients are those that PyTorch gave."""
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import flambeau
import flambeau.nn

sys.path.insert(0, str(Path(__file__).parent))

from network_answers import answer, calls, names  # noqa: E402
from network_cases import CASES, Maker  # noqa: E402

DATA = Path(__file__).parents[1] / "data"


def recorded():
    """Case by case the shape, the values, and the gradients."""
    data = np.load(DATA / "network.npz")
    bounds = np.concatenate([[(0, 0)], data["sizes"].cumsum(0)])
    shapes = json.loads(str(data["shapes"]))
    return {str(name): (shape, data["values"][a:b], data["grads"][c:d])
            for name, shape, (a, c), (b, d) in zip(data["names"], shapes, bounds, bounds[1:])}


RECORDED = recorded()


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    shape, values, grads = RECORDED[name]
    make = Maker(flambeau, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = CASES[name](flambeau, make)
    assert list(result.shape) == shape
    np.testing.assert_allclose(result.detach().numpy().reshape(-1), values, rtol=2e-6, atol=1e-6)
    weights = flambeau.cos(flambeau.arange(result.numel(), dtype=result.dtype)).reshape(shape)
    found = flambeau.autograd.grad((result * weights).sum(), make.inputs, allow_unused=True)
    flat = np.concatenate([np.zeros(x.numel()) if g is None else g.numpy().reshape(-1)
                           for g, x in zip(found, make.inputs)])
    np.testing.assert_allclose(flat, grads, rtol=2e-6, atol=1e-6)


ANSWERS = json.loads((DATA / "network_calls.json").read_text())
DIFFERENT = {
    # PyTorch makes a result without channels of an input without channels
    "F.conv2d(x4[:, :0], w4[:, :0])",
}


@pytest.mark.parametrize("call", [c for c in calls() if c not in DIFFERENT])
def test_shapes_types_and_errors(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = answer(call, names(flambeau))
    expected = ANSWERS[call]
    if is_error(expected):
        assert is_error(found), found
        assert found[0] == expected[0]
        assert found[1].startswith(expected[1][:40])
    else:
        assert found == expected


def is_error(answer):
    return isinstance(answer, list) and len(answer) == 2 and str(answer[0]).endswith("Error")
