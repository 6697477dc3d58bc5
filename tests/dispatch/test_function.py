"""The call in Python, and the same in C: one answer, one error."""
import pickle

import pytest

import flambeau as torch
from flambeau.dispatch.function import Function

x = torch.arange(6.0).reshape(2, 3)


def twin_of(function):
    return getattr(function, "twin", function)


CALLS = [("sum", (x,), {}), ("sum", (x, 1), {"keepdim": True}), ("sum", (x, [0, 1]), {}),
         ("max", (x, 0), {}), ("max", (x, x + 1), {}), ("cumsum", (x, -1), {"dtype": torch.int32}),
         ("transpose", (x, 0, 1), {}), ("topk", (x, 2), {"largest": False}),
         ("cat", ([x, x], 1), {})]
WRONG = [("sum", (x, "a"), {}), ("sum", (x, 5), {}), ("max", (x, 0, True, 1), {}), ("sum", (), {}),
         ("topk", (x,), {}), ("cat", (x,), {}), ("cat", ([x, 1],), {}), ("transpose", (x, 0), {}),
         ("cumsum", (x, 0), {"of": 1}), ("topk", (x, 7), {})]


@pytest.mark.parametrize("name,args,kwargs", CALLS)
def test_the_twin_gives_the_same(name, args, kwargs):
    function = getattr(torch, name)
    assert isinstance(twin_of(function), Function)
    for first, second in zip(*[r if isinstance(r, tuple) else (r,) for r in (
            function(*args, **kwargs), twin_of(function)(*args, **kwargs))]):
        assert torch.equal(first, second) and first.dtype is second.dtype


@pytest.mark.parametrize("name,args,kwargs", WRONG)
def test_the_twin_refuses_the_same(name, args, kwargs):
    said = []
    for function in (getattr(torch, name), twin_of(getattr(torch, name))):
        with pytest.raises((TypeError, IndexError, RuntimeError)) as raised:
            function(*args, **kwargs)
        said.append((raised.type, str(raised.value)))
    assert said[0] == said[1]


def test_overloads_are_tried_in_order():
    assert torch.max(x, 1).__match_args__ == ("values", "indices")
    assert torch.max(x, x).shape == x.shape and torch.max(x).ndim == 0


def test_functions_pickle_by_name():
    assert pickle.loads(pickle.dumps(torch.sum)) is torch.sum


def test_in_place_forms_write_and_give_the_tensor():
    y = x.clone()
    assert y.cumsum_(1) is y and torch.equal(y, x.cumsum(1))
    assert y._version == 1


def test_out_takes_the_result():
    out = torch.empty(0)
    assert torch.cumsum(x, 0, out=out) is out and torch.equal(out, x.cumsum(0))


def test_operators_leave_what_they_do_not_know_to_others():
    class Other:
        def __radd__(self, left):
            return "mine"
    assert x + Other() == "mine"


@pytest.mark.parametrize("name", ["__rsub__", "__pow__", "__ipow__"])
@pytest.mark.parametrize("first", [2, "a", [1]])
def test_operators_that_are_no_slots_take_any_first_operand(name, first):
    assert getattr(torch.Tensor, name)(first, 3) is NotImplemented


def test_operators_that_are_slots_want_a_tensor():
    with pytest.raises(TypeError, match=r"descriptor '__mul__' for .* doesn't apply to a 'int'"):
        torch.Tensor.__mul__(2, 3)
