"""Where values of a traced program come from, by the names in its guards."""
import dataclasses

import pytest

from flambeau._dynamo import source
from flambeau._guards import GuardSource

X = source.LocalSource("x")


def name_of(found):
    return found.name() if callable(found.name) else found.name


@pytest.mark.parametrize("found, name", [
    (X, "L['x']"), (source.GlobalSource("g"), "G['g']"), (source.ConstantSource("c"), "c"),
    (source.AttrSource(X, "shape"), "L['x'].shape"),
    (source.AttrSource(source.AttrSource(X, "a"), "b"), "L['x'].a.b"),
    (source.AttrSource(X, "not a name"), "getattr(L['x'], 'not a name')"),
    (source.GetItemSource(X, 2), "L['x'][2]"), (source.GetItemSource(X, "k"), "L['x']['k']"),
    (source.NegateSource(X), "L['x'].__neg__()"), (source.GradSource(X), "L['x'].grad"),
    (source.TensorPropertySource(X, source.TensorProperty.SIZE, 1), "L['x'].size()[1]"),
    (source.TensorPropertySource(X, source.TensorProperty.STRIDE, 0), "L['x'].stride()[0]"),
    (source.TensorPropertySource(X, source.TensorProperty.STORAGE_OFFSET),
     "L['x'].storage_offset()"),
    (source.EphemeralSource("made up"), "<ephemeral: made up>"),
    (source.EphemeralSource(), "<ephemeral>"),
    (source.RandomValueSource(3), "random_value_3")])
def test_names(found, name):
    assert name_of(found) == name


def test_kinds():
    kinds = [s.guard_source if not callable(s.guard_source) else s.guard_source() for s in (
        X, source.GlobalSource("g"), source.ConstantSource("c"), source.AttrSource(X, "a"))]
    assert kinds == [GuardSource.LOCAL, GuardSource.GLOBAL, GuardSource.CONSTANT,
                     GuardSource.LOCAL]
    assert source.EphemeralSource().is_ephemeral() and not X.is_ephemeral()


def test_they_are_values():
    assert source.AttrSource(X, "a") == source.AttrSource(source.LocalSource("x"), "a")
    assert len({X, source.LocalSource("x"), source.LocalSource("y")}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        X.local_name = "y"


def test_attributes_are_taken_one_by_one():
    with pytest.raises(AssertionError, match=r"AttrSource member must not contain '.', got 'a.b'"):
        source.AttrSource(X, "a.b")


def test_sizes_have_an_index():
    with pytest.raises(AssertionError):
        source.TensorPropertySource(X, source.TensorProperty.SIZE)
    with pytest.raises(AssertionError):
        source.TensorPropertySource(X, source.TensorProperty.STORAGE_OFFSET, 0)
