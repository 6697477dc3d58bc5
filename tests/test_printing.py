import json
import math
from pathlib import Path

import numpy as np
import pytest

from flambeau import printing

RECORDS = json.loads(Path(__file__).with_name("data").joinpath("printing.json").read_text())


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
