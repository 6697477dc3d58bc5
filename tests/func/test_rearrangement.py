import pytest

import flambeau as torch
from flambeau.func import rearrange

X = torch.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("pattern, lengths, expected", [
    ("a b c -> c a b", {}, X.permute(2, 0, 1)),
    ("a b c -> (a b) c", {}, X.reshape(6, 4)),
    ("a b (c d) -> d a b c", {"c": 2}, X.reshape(2, 3, 2, 2).permute(3, 0, 1, 2)),
    ("a ... -> ... a", {}, X.permute(1, 2, 0)),
    ("a ... -> (...) a", {}, X.permute(1, 2, 0).reshape(12, 2)),
    ("a b c -> a 1 b c ()", {}, X.reshape(2, 1, 3, 4, 1))])
def test_rearrange(pattern, lengths, expected):
    assert torch.equal(rearrange(X, pattern, **lengths), expected)


def test_a_list_is_stacked():
    assert torch.equal(rearrange([X, X + 1], "n a b c -> a b c n"), torch.stack([X, X + 1], -1))


@pytest.mark.parametrize("pattern, lengths, text", [
    ("a b c -> a b", {}, "only on one side"), ("a b -> a b", {}, "Number of dimensions"),
    ("a a c -> a c", {}, "duplicate dimension 'a'"), ("(a b c -> a", {}, "Imbalanced"),
    ("a b (c d) -> a b c d", {"c": 3}, "does not evenly fit"), ("a b c", {}, "->"),
    ("a b c -> a b c", {"z": 1}, "axes_lengths"), ("a b (c d) -> a b c d", {}, "do not follow")])
def test_refusals(pattern, lengths, text):
    with pytest.raises(ValueError, match=text):
        rearrange(X, pattern, **lengths)
