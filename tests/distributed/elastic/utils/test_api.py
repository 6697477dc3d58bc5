"""Variables, sockets, macros."""
from __future__ import annotations

import socket

import pytest

from flambeau.distributed.elastic.utils import (
    get_env_variable_or_raise,
    get_socket_with_port,
    macros,
)


def test_variables(monkeypatch):
    monkeypatch.setenv("SOME", "")
    assert get_env_variable_or_raise("SOME") == ""
    monkeypatch.delenv("SOME")
    with pytest.raises(ValueError, match=r"^Environment variable SOME expected, but not set$"):
        get_env_variable_or_raise("SOME")


@pytest.mark.parametrize(("given", "found"), [
    ("a${local_rank}", "a2"), ("$local_rank", "2"), ("${x}", "${x}"), ("$$", "$"), (3, 3),
    ("$local_rank_", "$local_rank_"), (None, None), ("", ""), ("$", "$")])
def test_macros(given, found):
    args = [given]
    assert macros.substitute(args, "2") == [found] and args == [given]


def test_a_listening_socket():
    with get_socket_with_port() as first, get_socket_with_port() as second:
        assert first.getsockname()[1] != second.getsockname()[1]
        with socket.create_connection(("localhost", first.getsockname()[1]), timeout=10):
            pass
