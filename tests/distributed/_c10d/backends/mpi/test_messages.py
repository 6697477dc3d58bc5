"""The heads of messages over MPI, and what is refused."""
from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

import flambeau as torch
from flambeau.distributed._c10d.backends.mpi import messages


@pytest.mark.parametrize("place", [None, ("x" * 60 + ".py", 3), ("y" * 1000 + ".py", 70)])
def test_heads_have_one_length(monkeypatch, place):
    words = "" if place is None else f" at {place[0]}:{place[1]}"
    monkeypatch.setattr(messages, "place_in_words", lambda found: words)
    head = messages._head(torch.ones(2, 3, dtype=torch.float64), 6, place)
    assert head.size == 256 and head.dtype.name == "uint8"
    dtype, shape, size, follows, where = pickle.loads(head.tobytes())
    assert (dtype, shape, size, follows) == ("torch.float64", [2, 3], 48, 6)
    assert words.endswith(where) and len(where) == min(len(words), 80 if len(words) > 100 else 99)


def test_a_head_of_many_dimensions_says_how_many_elements():
    x = torch.empty((1000,) + (1,) * 60 + (0,))
    head = messages._head(x.expand((1000,) + (1,) * 60 + (0,)), 0, None)
    assert len(head) == 256 and pickle.loads(head.tobytes())[2] == 0


@pytest.mark.parametrize(("tag", "found"), [(0, 1), (1, 5), (7, 29)])
def test_tags_of_heads_and_parts_differ(tag, found):
    made = messages.Messages(None, None, (1 << 15) - 1)
    assert made._tag(tag) == found and found & 3 == 1


@pytest.mark.parametrize("tag", [-1, 1 << 13])
def test_tags_that_mpi_does_not_know(tag):
    made = messages.Messages(None, object(), (1 << 15) - 1)
    with pytest.raises(ValueError, match="tags of messages over MPI are 0 to 8190, got"):
        made._tag(tag)
    with pytest.raises(ValueError, match="tags of messages"):
        made.send([torch.ones(1)], 0, tag)


def test_small_messages_travel_whole(monkeypatch):
    """Head and elements in one; large ones follow."""
    sent = []
    monkeypatch.setattr(messages, "as_bytes", lambda array: array.view("uint8"))
    comm = SimpleNamespace(Isend=lambda data, to, tag: sent.append((data.size, to, tag)) or data)
    owner = SimpleNamespace(check_notices=lambda to, message: sent.append(message))
    made = messages.Messages(owner, comm, (1 << 15) - 1)
    monkeypatch.setattr(made, "_start", lambda name, steps, tensors, members: list(
        steps(SimpleNamespace(place=None))))
    made.send([torch.ones(3)], 2, 1)
    assert sent == [(256 + 12, 2, 5)]
    sent.clear()
    made.send([torch.ones(2000)], 2, 1)
    assert sent == [(256, 2, 5), (8000, 2, 2), 2]
