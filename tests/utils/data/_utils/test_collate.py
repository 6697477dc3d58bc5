"""Collation and conversion."""

from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils.data import default_collate, default_convert
from flambeau.utils.data._utils.collate import collate, default_collate_fn_map

Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize("batch, dtype, expected", [
    ([1, 2], torch.int64, [1, 2]),
    ([1.0, 2.0], torch.float64, [1.0, 2.0]),
    ([True, False], torch.bool, [True, False]),
    ([np.float32(1), np.float64(2)], torch.float64, [1.0, 2.0]),
    ([np.int64(3), np.int64(4)], torch.int64, [3, 4]),
    ([np.array(1.5), np.array(2.5)], torch.float64, [1.5, 2.5]),
    ([np.ones(2, "f4"), np.zeros(2, "f4")], torch.float32, [[1, 1], [0, 0]]),
])
def test_numbers(batch, dtype, expected):
    result = default_collate(batch)
    assert result.dtype is dtype and result.tolist() == expected


def test_tensors_are_stacked():
    batch = [torch.ones(2), torch.zeros(2)]
    assert default_collate(batch).tolist() == [[1, 1], [0, 0]]
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([torch.ones(2), torch.ones(3)])


def test_structures():
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([(1, "a"), (2, "b")])[1] == ("a", "b")
    pair = default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert type(pair) is Pair and pair.x.tolist() == [1, 3]
    for kind in (dict, OrderedDict, lambda d: defaultdict(int, d)):
        result = default_collate([kind({"a": 1}), kind({"a": 2})])
        assert type(result) is type(kind({})) and result["a"].tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="each element in list of batch should be of equal"):
        default_collate([(1, 2), (1,)])


@pytest.mark.parametrize("batch, found", [
    ([None], "NoneType"), ([object()], "object"), ([np.array("a")], "<U1"), ([1j], "complex")])
def test_what_cannot_be_collated(batch, found):
    with pytest.raises(TypeError, match=f"default_collate: batch must contain .*{found}"):
        default_collate(batch)


def test_own_rules():
    class Thing:
        pass

    rules = {Thing: lambda batch, *, collate_fn_map=None: len(batch), **default_collate_fn_map}
    assert collate([(Thing(), 1), (Thing(), 2)], collate_fn_map=rules)[0] == 2


def test_conversion():
    converted = default_convert({"a": np.array([1, 2]), "b": (np.float32(1.5), "x"), "c": 3})
    assert converted["a"].tolist() == [1, 2]
    assert converted["b"][0].dtype is torch.float32 and converted["b"][1] == "x"
    assert converted["c"] == 3
    strings = np.array(["a"])
    assert default_convert(strings) is strings
