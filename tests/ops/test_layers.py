"""Functions of neural networks as a whole: shapes, types and errors of single calls, half types,
writes in place, and the names of nodes."""
import builtins
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from layers import Maker, every_case
from network_answers import answer, calls, names

import flambeau
import flambeau.nn
from flambeau.core.op import public

DATA = Path(__file__).parents[1] / "data"
CASES = every_case()
ANSWERS = json.loads((DATA / "network_calls.json").read_text())
DIFFERENT = {
    # PyTorch makes a result without channels of an input without channels
    "F.conv2d(x4[:, :0], w4[:, :0])",
}


@pytest.mark.parametrize("call", [c for c in calls("network") if c not in DIFFERENT])
def test_shapes_types_and_errors(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = answer(call, names(flambeau))
    expected = ANSWERS[call]
    if is_error(expected):
        assert is_error(found), found
        assert issubclass(getattr(builtins, found[0]), getattr(builtins, expected[0]))
        assert found[1].startswith(expected[1][:40])
    else:
        assert found == expected


def is_error(answer):
    return isinstance(answer, list) and len(answer) == 2 and str(answer[0]).endswith("Error")


def test_every_function_is_called():
    here = Path(__file__).parent
    text = "".join(path.read_text() for path in (*here.glob("*/test_*.py"),
                                                 here / "network_calls.txt"))
    words = set(re.findall(r"\w+", text))
    assert not set(public["nn.functional"]) - words


def test_writing_in_place_is_recorded():
    x = flambeau.tensor([-1.0, 0.5, 2.0], requires_grad=True)
    y = x * 1
    assert flambeau.nn.functional.silu(y, inplace=True) is y
    y.sum().backward()
    expected = x.detach().clone().requires_grad_()
    flambeau.nn.functional.silu(expected).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected.grad.numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", [flambeau.float16, flambeau.bfloat16])
@pytest.mark.parametrize("name", ["gelu", "softmax", "layer_norm", "conv2d", "avg_pool2d", "mish",
                                  "cross_entropy_mean", "mse_loss_mean", "attention", "rms_norm"])
def test_half_types_are_computed_in_float32(name, dtype):
    narrow, wide = Maker(flambeau, name, dtype), Maker(flambeau, name, flambeau.float32)
    found = CASES[name](flambeau, narrow)
    assert found.dtype == dtype
    expected = CASES[name](flambeau, wide)
    eps = flambeau.finfo(dtype).eps
    np.testing.assert_allclose(found.detach().float().numpy(), expected.detach().numpy(),
                               rtol=8 * eps, atol=16 * eps)
    found.sum().backward()
    assert all(x.grad.dtype == dtype for x in narrow.inputs)


def test_names_of_nodes():
    F, x = flambeau.nn.functional, flambeau.randn(2, 4, 6, 6, requires_grad=True)
    rows = x.flatten(1)
    found = {
        "ConvolutionBackward0": F.conv2d(x, flambeau.randn(3, 4, 2, 2)),
        "MaxPool2DWithIndicesBackward0": F.max_pool2d(x, 2),
        "NativeBatchNormBackward0": F.batch_norm(x, None, None, training=True),
        "NativeLayerNormBackward0": F.layer_norm(x, (6,)),
        "LogSoftmaxBackward0": F.log_softmax(rows, 1),
        "NllLossBackward0": F.cross_entropy(rows, flambeau.tensor([1, 2])),
        "MseLossBackward0": F.mse_loss(rows, rows.detach()),
        "SqueezeBackward1": F.avg_pool1d(x[0], 2),
        "EmbeddingBackward0": F.embedding(flambeau.tensor([0]), rows),
        "ReflectionPad2DBackward0": F.pad(x, (1, 1, 1, 1), mode="reflect"),
        "UpsampleBilinear2DBackward0": F.interpolate(x, scale_factor=2, mode="bilinear"),
    }
    assert {name: t.grad_fn.name() for name, t in found.items()} == {n: n for n in found}
