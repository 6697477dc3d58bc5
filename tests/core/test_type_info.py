"""Limits of types are those of the arithmetic, and constants are single objects."""
import copy
import pickle

import numpy as np
import pytest

import flambeau


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_limits_of_floating_types(name):
    d = getattr(flambeau, name)
    info = flambeau.finfo(d)
    one = flambeau.ones((), dtype=d)
    assert info.bits == 8 * d.itemsize and info.min == -info.max and info.tiny > 0
    assert (one + info.eps) > one and (one + info.eps / 4) == one
    assert flambeau.tensor(info.max, dtype=d).isfinite()
    assert flambeau.tensor(info.max, dtype=d).mul(2).isinf()


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64"])
def test_limits_of_integers(name):
    info, wanted = flambeau.iinfo(getattr(flambeau, name)), np.iinfo(name)
    assert (info.min, info.max, info.bits) == (wanted.min, wanted.max, wanted.bits)


def test_complex_numbers_have_the_limits_of_their_parts():
    assert flambeau.finfo(flambeau.complex64) == flambeau.finfo(flambeau.float32)


@pytest.mark.parametrize("ask,d,said", [
    (flambeau.finfo, flambeau.int32, "requires a floating point input type"),
    (flambeau.iinfo, flambeau.float32, "requires an integer input type"),
    (flambeau.iinfo, flambeau.bool, "torch.bool is not supported by torch.iinfo"),
    (flambeau.finfo, "float32", "must be torch.dtype, not str")])
def test_types_of_another_kind_are_refused(ask, d, said):
    with pytest.raises(TypeError, match=said):
        ask(d)


def test_named_constants_are_single():
    for constant in (flambeau.strided, flambeau.sparse_csr, flambeau.channels_last,
                     flambeau.per_tensor_affine):
        assert copy.deepcopy(constant) is constant
        assert pickle.loads(pickle.dumps(constant)) is constant


def test_types_of_python_stand_for_those_of_their_numbers():
    assert flambeau.iinfo(int).max == 2**63 - 1 and flambeau.finfo(float).bits == 64
    with pytest.raises(TypeError, match="requires a floating point input type"):
        flambeau.finfo(int)
