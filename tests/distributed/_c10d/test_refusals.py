"""What a process tells the others when its own call goes wrong."""
from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from flambeau.distributed._c10d import refusals
from flambeau.distributed._c10d.refusals import Refusing, announced, place_in_words


class Wire:
    """Takes to each group what the others of it say."""

    def __init__(self):
        self.refused, self.others = {}, []

    def tell(self, rank, key, body):

        name, number, count, reason = json.loads(body)
        other = next(o for o in self.others if o.me == rank)
        if number:
            other.peers.refused[self.me, name] = (number, count, reason)
        else:
            other.peers.refused.pop((self.me, name), None)


@pytest.fixture
def pair():
    made = []
    for rank in range(2):
        group = Refusing()
        group.peers, group.ranks, group.group_name, group._rank = Wire(), [0, 1], "g", rank
        group.peers.me = group.me = rank
        made.append(group)
    for group in made:
        group.peers.others = made
    return made


def test_who_refuses_does_not_come(pair):
    one, two = pair
    assert one.begin() == two.begin() == 1 and two.refusal(1) == ""
    one.refuse("broadcast: bad root")
    assert two.refusal(1) == ""                 # the one before runs on
    assert two.refusal(2) == "rank 0 has refused its call of broadcast: bad root"


def test_a_call_takes_the_word_back(pair):
    one, two = pair
    one.refuse("x")
    assert one.begin() == 1 and two.refusal(1) == ""


def test_those_who_refuse_as_much_go_on(pair):
    one, two = pair
    for group in pair:
        group.refuse("x")
    assert one.refusal(1) == two.refusal(1) == ""
    one.refuse("y")
    assert two.refusal(1) == "rank 0 has refused its call of y" and one.refusal(1) == ""


def test_notices_of_messages(pair):
    one, _ = pair
    one.check_notices()
    one.notices = {(1, 6): "does not fit", (1, 0): "nor does this"}
    one.check_notices(to=1, message=2)
    with pytest.raises(RuntimeError, match="does not fit"):
        one.check_notices(to=1, message=6)
    with pytest.raises(RuntimeError, match="nor does this"):
        one.begin()
    assert one.started == 0 and not one.notices
    one.notices = {(1, 0): "late"}
    with pytest.warns(UserWarning, match="late"):
        one.warn_of_notices()
    assert one.begin() == 1


def test_places(monkeypatch):
    assert place_in_words(None) == ""
    code = SimpleNamespace(co_filename="/a/" + "b" * 300 + "/c.py")
    monkeypatch.setattr(refusals, "read_place", lambda place: place)
    words = place_in_words((code, 12))
    assert words.startswith(" at …") and words.endswith("b/c.py:12") and len(words) == 4 + 1 + 203
    code.co_filename = "/a/c.py"
    assert place_in_words((code, 12)) == " at /a/c.py:12"


def test_errors_are_announced_once(pair, monkeypatch):
    one, two = pair
    group = SimpleNamespace(_default_backend=lambda: one)

    @announced
    def inner(tensor, group=None):
        raise ValueError("bad")

    @announced
    def outer(tensor, group=None):
        inner(tensor, group)
    with pytest.raises(ValueError, match="bad"):
        outer(3, group=group)
    assert "inner at " in two.refusal(1) and two.refusal(1).endswith("ValueError: bad")
    assert one._refused == (1, 1) and inner.__name__ == "inner"
    with pytest.raises(TypeError):
        outer(3, 4, 5)                          # of no group that is known
    assert one._refused == (1, 1)
