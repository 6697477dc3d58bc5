"""Kinds of pairs that programs define, and what is said of errors in them."""
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau
from flambeau.testing import _comparison as comparison


class Close(comparison.NumberPair):
    """Numbers with a tolerance of their own."""

    def __init__(self, actual, expected, **options):
        super().__init__(actual, expected, **options)
        self.atol = max(self.atol, 0.5)


def test_tolerances_of_a_subclass_count():
    def errors(actual, expected):
        return comparison.not_close_error_metas(actual, expected, pair_types=(Close,))
    assert errors([1.0, {"a": 2}], [1.25, {"a": 2}]) == []
    found, = errors([1.0, {"a": 2}], [1.25, {"a": 3}])
    assert found.id == (1, "a") and "Expected 3 but got 2" in found.msg
    with pytest.raises(AssertionError, match=re.escape("occurred for item [1]['a']")):
        raise found.to_error()


def test_all_differences_are_found():
    found = comparison.not_close_error_metas({"b": 1, "a": 2}, {"b": 3, "a": 4})
    assert [e.id for e in found] == [("a",), ("b",)]


def test_what_no_pair_takes_is_an_error_of_type():
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs"):
        comparison.not_close_error_metas("a", 1, pair_types=(comparison.NonePair,))


@pytest.mark.parametrize("name", ["__init__", "compare"])
def test_other_errors_of_a_pair_say_where(monkeypatch, name):
    def fails(*args, **kwargs):
        raise KeyError("x")
    monkeypatch.setattr(comparison.TensorLikePair, name, fails)
    with pytest.raises(RuntimeError, match="unexpected exception"):
        flambeau.testing.assert_close([flambeau.ones(1)], [flambeau.ones(1)])


def test_a_pair_prints_its_options():
    pair = comparison.TensorLikePair(flambeau.ones(1), flambeau.ones(1), id=(0,))
    assert repr(pair).splitlines()[:5] == [
        "TensorLikePair(", "    id=(0,),", "    actual=tensor([1.]),",
        "    expected=tensor([1.]),", "    rtol=1.3e-06,"]


def test_nested_tensors_are_compared_by_part():
    nested = flambeau.nested.nested_tensor
    same, other = (nested([flambeau.ones(2), flambeau.full((3,), last)]) for last in (1.0, 2.0))
    flambeau.testing.assert_close(same, same + 0)
    with pytest.raises(AssertionError, match="Mismatched elements: 3 / 3"):
        flambeau.testing.assert_close(same, other)


sizes = st.floats(-1e3, 1e3, width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sizes, sizes), min_size=1, max_size=4), st.floats(0, 0.5),
       st.floats(0, 2))
def test_close_is_within_the_sum_of_both_tolerances(values, rtol, atol):
    actual, expected = flambeau.tensor(values, dtype=flambeau.float64).unbind(1)
    within = all(abs(a - e) <= atol + rtol * abs(e) for a, e in values)
    for found, wanted in ((actual, expected), (actual.tolist(), expected.tolist()),
                          ({"x": actual.numpy()}, {"x": expected.numpy()})):
        errors = comparison.not_close_error_metas(
            found, wanted, pair_types=(comparison.NumberPair, comparison.TensorLikePair),
            rtol=rtol, atol=atol)
        assert (not errors) == within
