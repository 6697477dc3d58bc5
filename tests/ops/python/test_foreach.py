"""One op on every tensor of a list is the op on each of them."""
import pytest

import flambeau as torch


def lists():
    return [torch.rand(2, 3) + 0.5, torch.rand(4) + 0.5, torch.rand(()) + 0.5]


@pytest.mark.parametrize("name", ["abs", "exp", "sqrt", "neg", "sigmoid", "reciprocal", "log1p"])
def test_of_one_list(name):
    xs = lists()
    for found, x in zip(getattr(torch, f"_foreach_{name}")(xs), xs):
        assert torch.equal(found, getattr(torch, name)(x))
    copies = [x.clone() for x in xs]
    getattr(torch, f"_foreach_{name}_")(copies)
    assert all(torch.equal(c, getattr(torch, name)(x)) for c, x in zip(copies, xs))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "pow"])
@pytest.mark.parametrize("second", ["list", "number", "numbers"])
def test_of_two(name, second):
    xs, ys = lists(), lists()
    other = {"list": ys, "number": 2.0, "numbers": [1.0, 2.0, 3.0]}[second]
    each = other if isinstance(other, list) else [other] * 3
    for found, x, y in zip(getattr(torch, f"_foreach_{name}")(xs, other), xs, each):
        wanted = getattr(torch, name)(x, y if torch.is_tensor(y) or name != "maximum"
                                      else torch.tensor(y))
        assert torch.allclose(found, wanted)


def test_lists_of_other_lengths_are_refused():
    with pytest.raises(RuntimeError, match=r"same (number|length)|must have"):
        torch._foreach_add(lists(), lists()[:2])
    with pytest.raises(RuntimeError, match="at least one tensor"):
        torch._foreach_abs([])


def test_gradients_are_those_of_each():
    xs = [x.requires_grad_() for x in lists()]
    sum(y.sum() for y in torch._foreach_mul(xs, 3.0)).backward()
    assert all((x.grad == 3).all() for x in xs)
    norms = torch._foreach_norm([x.detach() for x in xs])
    assert torch.allclose(torch.stack(norms), torch.stack([x.detach().norm() for x in xs]))


def test_results_require_grad_where_one_tensor_does():
    a, b = torch.ones(3, requires_grad=True), torch.ones(2)
    first, second = torch._foreach_sqrt([a, b])
    assert first.requires_grad and second.requires_grad
    assert [t.requires_grad for t in torch._foreach_mul([b, b], [b, b])] == [False, False]
    (first.sum() + second.sum()).backward()
    assert a.grad.tolist() == [0.5] * 3 and b.grad is None
    with torch.no_grad():
        assert not torch._foreach_sqrt([a, b])[1].requires_grad


def test_refused_operands():
    x = [torch.ones(2)]
    for call, said in (
            (lambda: torch._foreach_add(x, torch.ones(1)), "expected to be 0 dim but it has 1 dim"),
            (lambda: torch._foreach_addcmul(x, x, x, torch.ones(2)), "input of length 1 but got 2"),
            (lambda: torch._foreach_addcmul(x, x, x, torch.ones(())), "of dimension 1. Got 0"),
            (lambda: torch._foreach_addcmul(x, x, [], 1), "same number of tensors, got 1 and 0"),
            (lambda: torch._foreach_norm([torch.ones(0)], float("inf")), "_foreach_norm cannot"),
            (lambda: torch._foreach_max([torch.ones(0)]), "_foreach_max cannot compute the max")):
        with pytest.raises(RuntimeError, match=said):
            call()
