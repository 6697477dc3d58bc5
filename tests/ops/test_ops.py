"""The package of ops: families are imported when one of their ops is first asked for."""
import subprocess
import sys

import pytest

import flambeau
from flambeau.ops import COMMON, LATE, LateMember, load

SCRIPT = """
import sys, flambeau
late = [name for name in sys.modules if name == "flambeau.ops.{family}"]
assert not late, late
found = {call}
assert "flambeau.ops.{family}" in sys.modules
print(found)
"""


@pytest.mark.parametrize("family, call, wanted", [
    ("linalg.ldl", "flambeau.linalg.ldl_factor(flambeau.eye(1)).LD.tolist()", "[[1.0]]"),
    ("reduction.scan", "flambeau.ones(2).cumsum(0).tolist()", "[1.0, 2.0]"),
])
def test_a_family_comes_with_its_first_op(family, call, wanted):
    script = SCRIPT.format(family=family, call=call)
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.strip() == wanted, found.stderr


def test_loading_stops_when_it_has_been_found():
    assert load(lambda: True) is True
    assert load() is False and not LATE


def test_a_method_stands_in_for_itself_until_its_family_is_there():
    member = LateMember("no_such_method", "flambeau.ops.view.shape")
    flambeau.Tensor.no_such_method = member
    try:
        with pytest.raises(AttributeError, match="has no attribute 'no_such_method'"):
            flambeau.ones(1).no_such_method
        assert member.name == "no_such_method"
    finally:
        del flambeau.Tensor.no_such_method


def test_the_common_families_are_there_and_apart_from_the_late_ones():
    assert all(f"flambeau.ops.{family}" in sys.modules for family in COMMON)
    assert not set(COMMON) & set(LATE)
