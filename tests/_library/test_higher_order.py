"""Ops that take functions."""
import pytest

import flambeau as torch
from flambeau._C import DispatchKey
from flambeau._ops import HigherOrderOperator
from flambeau.utils._python_dispatch import TorchDispatchMode


def test_names_are_kept_once():
    class Op(HigherOrderOperator):
        pass
    with pytest.raises(TypeError, match="abstract"):
        HigherOrderOperator("mirror_abstract")

    class Full(HigherOrderOperator):
        def __call__(self, *args):
            return super().__call__(*args)
    made = Full("mirror_full")
    assert torch.ops.higher_order.mirror_full is made and str(made) == "mirror_full"
    assert made.namespace == "higher_order" and made.__name__ == "mirror_full"


def test_modes_are_asked_first():
    class Twice(HigherOrderOperator):
        def __init__(self):
            super().__init__("mirror_twice")

        def __call__(self, f, x):
            return super().__call__(f, x)
    twice = Twice()
    twice.fallthrough(DispatchKey.AutogradCPU)

    @twice.py_impl(DispatchKey.CompositeExplicitAutograd)
    def _(f, x):
        return f(f(x))

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **kwargs or {})

    @twice.py_impl(Mode)
    def _(mode, f, x):
        return "by the mode"
    x = torch.tensor([2.0])
    assert twice(lambda x: x * x, x).item() == 16
    with Mode():
        assert twice(torch.sin, x) == "by the mode"
