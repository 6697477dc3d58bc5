"""Nested states as flat ones."""
import pytest

import flambeau as torch
from flambeau.distributed.checkpoint._nested_dict import flatten_state_dict, unflatten_state_dict


def test_names():
    flat, places = flatten_state_dict({"a": {"b": 1, "c": (1, 2)}, "d": [torch.ones(1), [3]]})
    assert list(flat) == ["a.b", "a.c", "d.0", "d.1"] and places["d.1"] == ("d", 1)
    assert unflatten_state_dict(flat, places)["a"] == {"b": 1, "c": (1, 2)}


def test_names_that_are_taken():
    with pytest.raises(ValueError, match=r"duplicated flatten key a\.b"):
        flatten_state_dict({"a": {"b": 1}, "a.b": 2})


def test_a_part_is_put_back():
    _, places = flatten_state_dict({"a": {"b": 1, "c": 2}, "d": [torch.ones(1), torch.ones(1)]})
    assert unflatten_state_dict({"d.1": 5}, places) == {"d": [None, 5]}
    assert unflatten_state_dict({}, places) == {}
    with pytest.raises(KeyError):
        unflatten_state_dict({"x": 1}, places)
