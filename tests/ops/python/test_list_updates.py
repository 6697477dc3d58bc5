"""Lists of tensors written to in one kernel call, beside the ops that do it one by one."""
import pytest

import flambeau as torch
from flambeau.kernels.network import optimizers as kernels
from flambeau.ops.python import list_updates

SHAPES = [(3,), (), (5, 7), (0, 2), (40_000,), (40_000,)]
CALLS = {
    "zero_": lambda ts, others: torch._foreach_zero_(ts),
    "copy_": lambda ts, others: torch._foreach_copy_(ts, others),
    "mul_": lambda ts, others: torch._foreach_mul_(ts, 1.5),
    "mul_ of each": lambda ts, others: torch._foreach_mul_(ts, [0.1 * i for i in range(len(ts))]),
    "mul_ by a tensor": lambda ts, others: torch._foreach_mul_(ts, torch.tensor(3.0)),
    "add_": lambda ts, others: torch._foreach_add_(ts, others, alpha=-0.5),
    "lerp_": lambda ts, others: torch._foreach_lerp_(ts, others, 0.25),
    "lerp_, far": lambda ts, others: torch._foreach_lerp_(ts, others, 0.75),
    "clamp_min_": lambda ts, others: torch._foreach_clamp_min_(ts, 0.1),
    "minimum_": lambda ts, others: torch._foreach_minimum_(ts, 0.1),
}


def tensors(seed, dtype):
    torch.manual_seed(seed)
    found = [torch.randn(shape, dtype=dtype) for shape in SHAPES]
    found[0][0] = torch.nan
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CALLS)
def test_as_ops_do_it(name, dtype, monkeypatch):
    fast, others = tensors(0, dtype), tensors(1, dtype)
    versions = [t._version for t in fast]
    CALLS[name](fast, others)
    assert all(t._version == v + 1 for t, v in zip(fast, versions, strict=True))
    monkeypatch.setattr(kernels, "update_arrays", lambda *args, **kwargs: False)
    slow = tensors(0, dtype)
    CALLS[name](slow, others)
    for one, other in zip(fast, slow, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True, rtol=1e-6, atol=1e-7)


def test_what_a_graph_must_see_is_left_to_ops():
    x = torch.ones(3, requires_grad=True)
    y = [x * 1.0]
    torch._foreach_mul_(y, 2.0)
    y[0].sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="leaf"):
        torch._foreach_zero_([x])
    with torch.no_grad():
        torch._foreach_zero_([x])
    assert x.tolist() == [0, 0, 0]


def test_overlapping_tensors_are_written_in_order():
    x = torch.ones(100_000)
    torch._foreach_mul_([x, x], 2.0)
    assert (x == 4).all()
    torch._foreach_mul_([x[:60_000], x[50_000:]], 2.0)
    assert (x[50_000:60_000] == 16).all() and (x[:50_000] == 8).all()
    y = torch.arange(4.0)
    torch._foreach_copy_([y[:2], y[2:]], [y[2:], y[:2]])
    assert y.tolist() == [2, 3, 2, 3]


def test_other_shapes_and_types_are_left_to_ops():
    x = [torch.ones(2, 3), torch.ones(3, dtype=torch.int64)]
    torch._foreach_mul_(x, 2)
    assert x[0].tolist() == [[2, 2, 2], [2, 2, 2]] and x[1].tolist() == [2, 2, 2]
    torch._foreach_add_(x[:1], [torch.arange(3.0)])
    assert x[0].tolist() == [[2, 3, 4], [2, 3, 4]]
    torch._foreach_clamp_min_(x[:1], torch.nan)
    assert x[0].isnan().all()


def test_lazy_clones_keep_their_values():
    x = torch.ones(3)
    y = x._lazy_clone()
    torch._foreach_zero_([x])
    assert x.tolist() == [0, 0, 0] and y.tolist() == [1, 1, 1]


def test_finite():
    found = [list_updates.all_finite([torch.ones(70_000), t]) for t in (
        torch.zeros(3), torch.tensor([1.0, torch.inf]), torch.tensor([torch.nan]))]
    assert found in ([True, False, False], [None] * 3)
    assert list_updates.all_finite([torch.ones(2), torch.ones(2).double()]) is None
