"""Sizes given as numbers or as tuples, and prefixes of states."""
from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.modules import utils


@pytest.mark.parametrize("function, count", [("_single", 1), ("_pair", 2), ("_triple", 3),
                                             ("_quadruple", 4)])
def test_tuples_of_numbers(function, count):
    parse = getattr(utils, function)
    assert parse(7) == (7,) * count and parse.__name__ == function
    assert parse([1, 2]) == (1, 2) and parse(x for x in "ab") == ("a", "b")
    assert parse(None) == (None,) * count


def test_sides_in_the_order_of_padding():
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert utils._reverse_repeat_tuple((1, 2, 3), 1) == (3, 2, 1)


def test_sizes_with_gaps():
    assert utils._list_with_default([None, 5], [1, 2, 3, 4]) == [3, 5]
    assert utils._list_with_default(7, [1, 2]) == 7
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        utils._list_with_default([1, 2], [3, 4])


def test_prefixes_are_taken_off_in_place():
    model = nn.Sequential(OrderedDict(module=nn.Linear(1, 1)))
    state = model.state_dict()
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["weight", "bias"] and dict(state._metadata) == {"": {"version": 1}}
    nn.Linear(1, 1).load_state_dict(state)
    others = {"module.a": 1, "b": 2}
    utils.consume_prefix_in_state_dict_if_present(others, "module.")
    assert others == {"b": 2, "a": 1}


def test_prefixes_of_nested_modules():
    state = nn.ModuleDict({"net": nn.Sequential(nn.BatchNorm1d(1))}).state_dict()
    nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "net.")
    assert torch.equal(state["0.weight"], torch.ones(1))
    assert state._metadata["0"] == {"version": 2}
