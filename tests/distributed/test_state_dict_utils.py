"""States with tensors in them."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import distributed as dist
from flambeau.distributed import _state_dict_utils as u


class Own:
    def __eq__(self, other):
        return isinstance(other, Own)

    __hash__ = None


def state():
    return {"a": torch.ones(2), "n": {"b": torch.arange(3), "l": [1, torch.zeros(1)]},
            "t": (torch.ones(1), "x"), "z": None}


@pytest.fixture
def one():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def same(found, expected):
    if isinstance(expected, torch.Tensor):
        return torch.equal(found, expected)
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], expected[k]) for k in found)
    if isinstance(expected, (list, tuple)):
        return type(found) is type(expected) and all(map(same, found, expected))
    return found == expected


def test_states_are_copied(one):
    for function in (u._gather_state_dict, u._offload_state_dict_to_cpu):
        assert same(function(state()), state())
        assert function(state(), ranks_only=(5,)) == {}
        with pytest.raises(ValueError, match=r"Unexpected value type <class '.*Own'>"):
            function({"o": Own()})
        assert function({"o": Own()}, type_check=False) == {"o": Own()}


def test_room_is_filled():
    room = u._create_cpu_state_dict(state())
    assert u._check_state_dict_similarity(state(), room) and room["n"]["b"].dtype is torch.int64
    found = u._copy_state_dict(state(), room)
    assert same(found, state()) and found["a"] is room["a"]
    with pytest.raises(u.CompanionMismatch):
        u._copy_state_dict({"a": torch.ones(2), "b": 1}, {"a": torch.ones(2)})


@pytest.mark.parametrize("change", [
    {"a": torch.ones(3)}, {"a": torch.ones(2, dtype=torch.float64)}, {"t": (torch.ones(1),)},
    {"more": 1}, {"n": {}}])
def test_what_differs(change):
    assert u._check_state_dict_similarity(state(), state())
    assert not u._check_state_dict_similarity(state(), {**state(), **change})


def test_names_and_places():
    nested = {"a": {"b": 1, "e": {}}, "l": [2, (3, [])], 4: "x"}
    flat, places = u._flatten_state_dict(nested)
    assert flat == {"a.b": 1, "l.0": 2, "l.1.0": 3, "4": "x"}          # what is empty is lost
    assert places["l.1.0"] == ("l", 1, 0)
    assert u._unflatten_state_dict(flat, places) == {
        "a": {"b": 1}, "l": [2, [3]], "4": "x"}
    with pytest.raises(ValueError, match=r"duplicated flatten key a\.b"):
        u._flatten_state_dict({"a": {"b": 1}, "a.b": 2})


def test_the_state_of_the_first_process(one):
    local = {"a": torch.zeros(2), "step": 0, "gone": 1}
    u._broadcast_state_dict({"a": torch.ones(2), "step": 3}, local, torch.device("cpu"),
                            strict=True)
    assert local["step"] == 3 and local["a"].tolist() == [1, 1] and "gone" not in local
