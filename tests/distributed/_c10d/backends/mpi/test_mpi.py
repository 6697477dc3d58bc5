"""Which processes can use MPI together."""
from __future__ import annotations

import pytest

from flambeau import distributed as dist
from flambeau.distributed._c10d.backends import mpi


def offered(monkeypatch, *entries):
    """A store in which processes have said what they have."""
    store = dist.HashStore()
    for rank, entry in enumerate(entries):
        store.set(f"mpi/{rank}", entry)
    return store


@pytest.mark.parametrize(("entries", "can"), [
    (["new", "new"], True), (["new", ""], False), (["", ""], False),
    (["world 0", "world 1"], True), (["world 1", "world 0"], True), (["a 0", "b 1"], False),
    (["world 0", "new"], False)])
def test_all_give_the_same_answer(monkeypatch, entries, can):
    store = offered(monkeypatch, *entries)
    assert [mpi.everywhere(store, rank, 2) for rank in range(2)] == [can, can]


def test_a_process_says_what_it_has_once(monkeypatch):
    said = iter(["new", "other"])
    monkeypatch.setattr(mpi, "membership", lambda: next(said))
    store = dist.HashStore()
    assert mpi.everywhere(store, 0, 1) and mpi.everywhere(store, 0, 1)
    assert store.get("mpi/0") == b"new"


@pytest.mark.parametrize(("entries", "words"), [
    (["new", "", ""], "not installed for rank 1, 2: pip install"),
    (["world 0", "new", "new"], "a process can initialize MPI once")])
def test_why_not(monkeypatch, entries, words):
    store = offered(monkeypatch, *entries)
    with pytest.raises(RuntimeError, match=words):
        mpi._world(store, 0, 3)
