"""Patterns of names."""

import pytest

from flambeau.package import GlobGroup


@pytest.mark.parametrize(("include", "exclude", "matched"), [
    ("a.*", (), ["a.b"]), ("a.**", (), ["a", "a.b", "a.b.c"]),
    ("**", ("b",), ["a", "a.b", "a.b.c", "b.x.c", "b.c"]), (["a", "b.*.c"], (), ["a", "b.x.c"])])
def test_patterns(include, exclude, matched):
    group = GlobGroup(include, exclude=exclude)
    names = ("a", "a.b", "a.b.c", "b", "b.x.c", "b.c")
    assert [name for name in names if group.matches(name)] == matched
