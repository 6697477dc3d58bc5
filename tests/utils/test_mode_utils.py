"""Dispatch set aside."""
import flambeau as torch
from flambeau.autograd import forward_ad
from flambeau.overrides import enable_reentrant_dispatch
from flambeau.utils._mode_utils import all_same_mode, no_dispatch


class Seen(torch.Tensor):
    """Notes what it is shown, and runs that with dispatch set aside."""
    shown: list = []

    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data)

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with enable_reentrant_dispatch():
            leaf = torch.rand(1, requires_grad=True)
            cls.shown.append((str(func), leaf.exp().grad_fn is not None))
        guard = torch._C._DisableTorchDispatch()
        try:
            return func(*args, **(kwargs or {}))
        finally:
            del guard


def test_overloads_run_with_dispatch_set_aside():
    """Of a dual tensor the primal alone is seen, as an alias; a rule may record ops of its own."""
    x = Seen(torch.tensor(1.0))
    Seen.shown.clear()
    with forward_ad.dual_level():
        forward_ad.make_dual(x, torch.tensor(2.0))
        assert Seen.shown == [("aten.alias.default", True)]
        forward_ad.make_dual(torch.tensor(2.0), x)
    assert [name for name, _ in Seen.shown].count("aten.alias.default") == 1


def test_dispatch_is_set_aside_until_the_scope_is_left():
    x = Seen(torch.tensor(1.0))
    Seen.shown.clear()
    with no_dispatch():
        torch.sin(x)
    with torch._C._DisableTorchDispatch():
        torch.sin(x)
    assert not Seen.shown
    torch.sin(x)
    assert [name for name, _ in Seen.shown] == ["aten.sin.default"]


def test_same_modes():
    assert all_same_mode([]) and all_same_mode([1, 1]) and not all_same_mode([1, 2])
