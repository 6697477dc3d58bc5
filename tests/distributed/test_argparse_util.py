"""Options that the environment can set, too."""
from __future__ import annotations

import argparse

import pytest

from flambeau.distributed.argparse_util import check_env, env


def parse(*args, **options):
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--nodes", "--n-nodes", action=env, **options)
    parser.add_argument("--fast", action=check_env)
    parser.add_argument("--slow", action=check_env, default=True)
    return parser.parse_args(args)


def test_without_the_environment(monkeypatch):
    monkeypatch.delenv("PET_NODES", raising=False)
    assert parse().nodes is None and parse(default="3").nodes == "3"
    assert parse("--nodes", "4", default="3").nodes == "4"
    found = parse("--fast")
    assert found.fast is True and found.slow is True and parse().fast is False
    assert parse("--n-nodes", "5", type=int).nodes == 5


def test_the_environment(monkeypatch):
    monkeypatch.setenv("PET_NODES", "7")
    monkeypatch.setenv("PET_FAST", "1")
    monkeypatch.setenv("PET_SLOW", "0")
    found = parse(default="3", required=True)
    assert (found.nodes, found.fast, found.slow) == ("7", True, False)
    assert parse(type=int).nodes == 7 and parse("--nodes", "8").nodes == "8"
    assert parse("--slow").slow is True


def test_what_has_to_be_given(monkeypatch, capsys):
    monkeypatch.delenv("PET_NODES", raising=False)
    with pytest.raises((SystemExit, argparse.ArgumentError)):
        parse(required=True)
    monkeypatch.setenv("PET_FAST", "yes")
    with pytest.raises(ValueError, match="invalid literal"):
        parse()
