"""`rearrange` against the permutations and reshapes that its patterns stand for."""
import pytest

import flambeau as torch
from flambeau.func import grad, rearrange, vmap

X = torch.arange(24.0).reshape(2, 3, 4)

SAME = [
    ("a b c -> c a b", {}, lambda x: x.permute(2, 0, 1)),
    ("a b c -> (a b) c", {}, lambda x: x.reshape(6, 4)),
    ("a b c -> (b a) c", {}, lambda x: x.transpose(0, 1).reshape(6, 4)),
    ("a (b1 b2) c -> b1 a b2 c", {"b1": 3}, lambda x: x.reshape(2, 3, 1, 4).permute(1, 0, 2, 3)),
    ("a b (c d) -> (a d) (b c)", {"d": 2},
     lambda x: x.reshape(2, 3, 2, 2).permute(0, 3, 1, 2).reshape(4, 6)),
    ("a ... -> ... a", {}, lambda x: x.permute(1, 2, 0)),
    ("a ... -> a (...)", {}, lambda x: x.reshape(2, 12)),
    ("... c -> 1 c () ...", {}, lambda x: x.permute(2, 0, 1)[None, :, None]),
    ("  a b   c->c b a ", {}, lambda x: x.permute(2, 1, 0)),
]

REFUSED = [
    ("a b c", {}, "single '->'"),
    ("a b c -> a b", {}, "only on one side"),
    ("a a c -> a c", {}, "duplicate dimension 'a'"),
    ("a b -> b a", {}, "must be equal to the number of dimensions in the tensor"),
    ("a b c -> a b c", {"z": 2}, "not found in rearrange expression"),
    ("a 3 c -> a c", {}, "unnamed axes of size 1"),
    ("a _b c -> a _b c", {}, "Invalid axis identifier: _b"),
    ("a b (c -> a b c", {}, "Imbalanced parentheses"),
    ("(...) c -> c ...", {}, "Ellipsis is parenthesis in the left side"),
    ("a b c -> ((a b) c)", {}, "one-level"),
    ("a b. c -> a b c", {}, "dots only inside ellipsis"),
    ("a b (c d) -> a b c d", {}, "cannot infer the sizes"),
    ("a b (c d) -> a b c d", {"c": 3}, "does not evenly fit"),
    ("a b c -> c b a", {"a": 3}, "do not match"),
]


@pytest.mark.parametrize("pattern, lengths, expected", SAME)
def test_patterns(pattern, lengths, expected):
    assert torch.equal(rearrange(X, pattern, **lengths), expected(X))


@pytest.mark.parametrize("pattern, lengths, message", REFUSED)
def test_refused(pattern, lengths, message):
    with pytest.raises(Exception, match=message):
        rearrange(X, pattern, **lengths)


def test_lists_views_and_transforms():
    assert torch.equal(rearrange([X, X + 1], "n a b c -> a n b c"),
                       torch.stack([X, X + 1], 1))
    assert rearrange(X, "a b c -> c (a b)")._base is not None
    weights = rearrange(X, "a b c -> c b a")
    assert torch.equal(grad(lambda x: (rearrange(x, "a b c -> c b a") * weights).sum())(X), X)
    assert torch.equal(vmap(lambda x: rearrange(x, "b c -> c b"))(X), X.mT)
