"""What all ops have in common: kernels that programs register."""
import pytest

import flambeau as torch
from flambeau._C import DispatchKey
from flambeau._ops import HigherOrderOperator


class Called(HigherOrderOperator):
    def __init__(self, name):
        super().__init__(name)

    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs)


def test_kernels_by_key():
    op = Called("mirror_operator_called")
    assert op.name() == "mirror_operator_called"
    assert not op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)

    @op.py_impl(DispatchKey.CompositeImplicitAutograd)
    def kernel(f, x):
        return f(x)
    assert op.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)
    assert op.py_kernels[DispatchKey.CompositeImplicitAutograd] is kernel
    assert op(torch.sin, torch.zeros(1)).item() == 0
    with pytest.raises(RuntimeError, match="Trying to override a python impl for"):
        op.py_impl(DispatchKey.CompositeImplicitAutograd)(kernel)


def test_ops_of_the_dispatcher_know_their_kernels():
    add = torch.ops.aten.add.Tensor
    assert add.has_kernel_for_dispatch_key(DispatchKey.CPU)
    assert add.name() == "aten::add.Tensor"
    assert torch.ops.aten.reshape.default.has_kernel_for_dispatch_key(
        DispatchKey.CompositeImplicitAutograd)
