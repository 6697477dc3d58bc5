"""What MPICH asks when it starts, and what it is told."""
from __future__ import annotations

import os
import threading

import pytest

from flambeau import distributed as dist
from flambeau.distributed._c10d.backends.mpi.process_manager import (
    ProcessManager,
    process_mapping,
)


class Library:
    """Asks line by line, as MPICH does at its end of the socket."""

    def __init__(self, manager):
        self.manager = manager
        self.stream = manager.theirs.makefile("rw", newline="\n")

    def ask(self, line):
        self.stream.write(line + "\n")
        self.stream.flush()
        return self.stream.readline().strip()

    def close(self):
        self.stream.close()
        self.manager.theirs.close()


@pytest.fixture
def libraries():
    store = dist.HashStore()
    made = [Library(ProcessManager(store, rank, 2, "job", "(vector,(0,1,2))"))
            for rank in range(2)]
    yield made
    for library in made:
        library.close()


def test_the_environment(libraries):
    found = libraries[1].manager.environment()
    assert (found["PMI_RANK"], found["PMI_SIZE"], found["PMI_SPAWNED"]) == ("1", "2", "0")
    assert os.fstat(int(found["PMI_FD"]))


def test_what_is_always_the_same(libraries):
    ask = libraries[0].ask
    assert ask("cmd=init pmi_version=1 pmi_subversion=1") == (
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
    assert ask("cmd=get_maxes").startswith("cmd=maxes rc=0 kvsname_max=")
    assert ask("cmd=get_my_kvsname") == "cmd=my_kvsname rc=0 kvsname=job"
    assert ask("cmd=get_universe_size") == "cmd=universe_size rc=0 size=2"
    assert ask("cmd=finalize") == "cmd=finalize_ack rc=0"
    assert ask("cmd=dance") == "cmd=dance_result rc=-1 msg=unknown"


def test_values_of_the_others(libraries):
    first, second = libraries
    assert first.ask("cmd=put kvsname=job key=a value=x y=z") == "cmd=put_result rc=0 msg=success"
    assert second.ask("cmd=get kvsname=job key=a").endswith("msg=success value=x y=z")
    assert second.ask("cmd=get kvsname=job key=b") == (
        "cmd=get_result rc=-1 msg=key_not_found value=unknown")
    assert second.ask("cmd=get kvsname=job key=PMI_process_mapping").endswith(
        "value=(vector,(0,1,2))")
    assert "rc=-1" in second.ask("cmd=get kvsname=job key=PMI_other")


def test_barriers(libraries):
    replies = []
    waiting = threading.Thread(target=lambda: replies.append(libraries[0].ask("cmd=barrier_in")))
    waiting.start()
    waiting.join(0.05)
    assert replies == []
    assert libraries[1].ask("cmd=barrier_in") == "cmd=barrier_out rc=0"
    waiting.join(10)
    assert replies == ["cmd=barrier_out rc=0"]


@pytest.mark.parametrize(("hosts", "wanted"), [
    (["a"], "(vector,(0,1,1))"), (["a"] * 4, "(vector,(0,1,4))"),
    (["a", "b"], "(vector,(0,1,1),(1,1,1))"),
    (["b", "b", "a", "b"], "(vector,(0,1,2),(1,1,1),(0,1,1))")])
def test_machines_of_ranks(hosts, wanted):
    assert process_mapping(hosts) == wanted
