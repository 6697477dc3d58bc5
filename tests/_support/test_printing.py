import json
import math
from pathlib import Path

import numpy as np
import pytest

import flambeau
from flambeau._support import printing

DATA = Path(__file__).parents[1] / "data"
RECORDS = json.loads(DATA.joinpath("printing.json").read_text())
TENSORS = json.loads(DATA.joinpath("printing_tensors.json").read_text())


def _numpy_dtype(name):
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def build(kind, dtype, *rest):
    """The array that data/record_printing.py printed with PyTorch."""
    dtype = _numpy_dtype(dtype)
    if kind == "range":
        shape, scale = rest
        numbers = np.arange(math.prod(shape), dtype=np.float64) * scale
        if dtype.kind == "c":
            parts = np.stack([numbers, 1 - numbers / 3], axis=-1)
            numbers = parts.view(np.complex128)[:, 0]
        if dtype.kind == "b":
            numbers = numbers % 3 == 0
        return numbers.astype(np.int64 if dtype.kind == "u" else dtype).astype(dtype).reshape(shape)
    (values,) = rest
    if dtype.kind == "c":
        parts = np.array(values, dtype=np.float64)
        return (parts if parts.ndim == 1 else parts.view(np.complex128)[:, 0]).astype(dtype)
    if dtype.kind in "fV":
        return np.array(values, dtype=np.float64).astype(dtype)
    return np.array(values, dtype=dtype)


def numbers_of(text):
    """The text of the numbers alone, without ``tensor(`` and the suffixes."""
    inner = text.removeprefix("tensor(").removesuffix(")")
    if inner.startswith("["):
        return inner[: inner.rindex("]") + 1]
    return inner.split(",")[0]


@pytest.fixture(autouse=True)
def _default_options():
    yield
    printing.set_printoptions(profile="default")


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: "-".join(map(str, r["make"][:2])))
def test_numbers_are_laid_out_as_pytorch_does(record):
    array = build(*record["make"])
    with printing.printoptions(**record["options"]):
        text = printing.format_array(array, len("tensor("))
    assert text == numbers_of(record["repr"])


@pytest.mark.parametrize("record", TENSORS, ids=lambda r: f"{r['expression']}-{r['default']}")
def test_tensors_are_shown_as_pytorch_shows_them(record):
    try:
        flambeau.set_default_dtype(getattr(flambeau, record["default"]))
        assert repr(eval(record["expression"], {"torch": flambeau})) == record["repr"]
    finally:
        flambeau.set_default_dtype(flambeau.float32)


def test_repr_follows_the_options():
    x = flambeau.arange(4.0) / 3
    with printing.printoptions(precision=2, threshold=3, edgeitems=1):
        assert repr(x + 0.5) == "tensor([0.50,  ..., 1.50])"
        assert printing.get_printoptions()["precision"] == 2
    with printing.printoptions(sci_mode=True):
        assert repr(flambeau.tensor([0.0, 1 / 3])) == "tensor([0.0000e+00, 3.3333e-01])"
    with printing.printoptions(profile="full"):
        assert "..." not in repr(flambeau.ones(2000))
    flambeau.set_printoptions(precision=1)
    assert repr(flambeau.tensor(1 / 3)) == "tensor(0.3)"
    assert printing.get_printoptions() == {"precision": 1, "threshold": 1000, "edgeitems": 3,
                                           "linewidth": 80, "sci_mode": None}


def test_contents_can_be_replaced():
    assert flambeau.ones(2).__repr__(tensor_contents="X") == "tensor(X)"


def test_subclasses_show_their_name():
    class Metres(flambeau.Tensor):
        pass

    assert repr(flambeau.ones(2).as_subclass(Metres)) == "Metres([1., 1.])"


def test_tangent_of_a_dual_tensor():
    import flambeau.autograd.forward_ad as forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(flambeau.ones(2), flambeau.zeros(2))
        assert repr(dual) == "tensor([1., 1.], tangent=tensor([0., 0.]))"


def test_format_of_numbers():
    assert f"{flambeau.tensor(2.5):.3f} {flambeau.tensor(3):>4}" == "2.500    3"
    assert f"{flambeau.ones(1)}" == "tensor([1.])"
    with pytest.raises(TypeError, match=r"unsupported format string passed to Tensor\.__format__"):
        format(flambeau.ones(1), ".3f")
