"""Walks through nested states."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.distributed.checkpoint._traverse import (
    get_element,
    print_tensor,
    set_element,
    traverse_state_dict,
    traverse_state_dict_v_2_3,
)

T = torch.ones(1)
STATE = {"a": 1, "d": {"x": T, 3: {"y": 2}}, "l": [1, [2]], "m": [1, T], "t": (T,), "e": {},
         "n": [{"z": 1}], "o": []}


def seen(walk, state):
    found = []
    walk(state, lambda path, value: found.append((path, value)))
    return found


def test_what_is_visited():
    assert [path for path, _ in seen(traverse_state_dict, STATE)] == [
        ("a",), ("d", "x"), ("d", "3", "y"), ("l",), ("m", 0), ("m", 1), ("t",),
        ("n", 0, "z"), ("o",)]


def test_what_was_visited_once():
    assert [path for path, _ in seen(traverse_state_dict_v_2_3, STATE)] == [
        ("a",), ("d", "x"), ("d", "3"), ("l",), ("m", 0), ("m", 1), ("t",), ("e",), ("n",),
        ("o",)]


def test_lists_that_are_kept():
    found = []
    traverse_state_dict({"l": ["x", 1]}, lambda path, value: found.append(path),
                        lambda value: isinstance(value, str))
    assert found == [("l", 0), ("l", 1)]


def test_a_state_is_made_again():
    made = {}
    for path, value in seen(traverse_state_dict, {"a": {"b": [T, {"c": 1}]}, "d": [2]}):
        set_element(made, path, value)
    assert made == {"a": {"b": [T, {"c": 1}]}, "d": [2]}


@pytest.mark.parametrize(("path", "made"), [
    (("a",), {"a": 7}), (("a", 2), {"a": [None, None, 7]}), (("a", "b"), {"a": {"b": 7}}),
    (("a", 0, "b", 1), {"a": [{"b": [None, 7]}]}), (("a", 1, 0), {"a": [None, [7]]})])
def test_places(path, made):
    root = {}
    set_element(root, path, 7)
    assert root == made and get_element(root, path) == 7
    set_element(root, path, 8)
    assert get_element(root, path, 0) == 8


@pytest.mark.parametrize("path", [
    ("x",), ("a", "x"), ("a", 0), ("l", 5), ("l", "x"), ("a", "b", 0)])
def test_places_where_nothing_is(path):
    root = {"a": {"b": 1}, "l": [1]}
    assert get_element(root, path) is None and get_element(root, path, 3) == 3
    assert get_element(root, ()) is root and get_element(root, ("l", 0)) == 1


def test_printing():
    lines = []
    print_tensor(("a", 0), torch.ones(2, 3), lines.append)
    print_tensor(("b",), 3, lines.append)
    assert lines == ["('a', 0) Tensor size: torch.Size([2, 3])", "('b',) Type: <class 'int'>"]
