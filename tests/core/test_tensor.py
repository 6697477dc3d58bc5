"""What a tensor holds: its array, its edge, and the counter of its memory."""
import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau.core.tensor import LAZY, LEAF, gradient_edge, wrap


def test_edges_say_where_gradients_go():
    x = torch.ones(2)
    assert gradient_edge(x) is None and x.is_leaf
    x.requires_grad_()
    assert x._edge is LEAF and gradient_edge(x) is x and x.is_leaf
    y = x * 2
    assert gradient_edge(y) is y.grad_fn and not y.is_leaf


def test_a_view_asks_when_its_memory_was_written_to():
    x = torch.ones(3, requires_grad=True)
    base = x * 1
    view = base[:2]
    assert view._edge is LAZY and view.grad_fn.name() == "SliceBackward0"
    base.mul_(2)
    assert view.grad_fn.name() == "AsStridedBackward0"      # made anew, from the base's new history
    view.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 0.0]


def test_writes_are_counted_once_for_all_tensors_on_the_memory():
    x = torch.zeros(4)
    view, other = x[:2], x.detach()
    view.add_(1)
    assert x._version == view._version == other._version == 1
    x.data.add_(1)
    assert x._version == 1 and x.tolist() == [2.0, 2.0, 1.0, 1.0]


def test_only_numbers_with_fractions_have_gradients():
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype"):
        torch.ones(2, dtype=torch.int64).requires_grad = True
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf"):
        y.requires_grad = False


def test_inference_tensors_count_nothing():
    with torch.inference_mode():
        x = torch.ones(2)
    with pytest.raises(RuntimeError, match="do not track version counter"):
        _ = x._version
    with pytest.raises(RuntimeError, match="outside InferenceMode is not allowed"):
        x.requires_grad = True


def test_a_gradient_that_nobody_kept_is_warned_of():
    y = torch.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_wrapping_shares_memory():
    array = np.zeros(3, np.float32)
    x = wrap(array)
    x += 1
    assert array.tolist() == [1.0] * 3 and x.dtype is torch.float32


def test_data_takes_the_memory_of_another():
    x, y = torch.ones(2, requires_grad=True), torch.zeros(3)
    x.data = y
    assert x.shape == (3,) and x.requires_grad and x.data_ptr() == y.data_ptr()
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        x.data = [1.0]


def test_methods_that_come_late_are_members_all_the_time():
    code = """
import sys, flambeau
from flambeau.ops import LateMember
late = {n: m for n, m in vars(flambeau.Tensor).items() if isinstance(m, LateMember)}
assert "tril" in late and not hasattr(flambeau.Tensor, "__getattr__")
assert flambeau.ones(2, 2).tril().tolist() == [[1, 0], [1, 1]] and "tril" in dir(flambeau.Tensor)
assert not isinstance(vars(flambeau.Tensor)["tril"], LateMember)
for name in late:
    assert getattr(flambeau.Tensor, name) is not None, name
from flambeau.ops import load
load()
assert not any(isinstance(m, LateMember) for m in vars(flambeau.Tensor).values())
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute 'no_such'"):
        torch.ones(2).no_such
    with pytest.raises(AttributeError, match="type object 'Tensor' has no attribute 'no_such'"):
        torch.Tensor.no_such


def test_a_subclass_whose_init_subclass_calls_no_other():
    class Registered(torch.Tensor):
        def __init_subclass__(cls, **options):
            cls.known = True

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return cls.made() if func is torch.ops.aten.detach.default else NotImplemented

        @classmethod
        def made(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2,))

    class Child(Registered):
        pass

    assert Child.known and type(Child.made().detach()) is Child
    assert type(torch.nn.Parameter(Child.made())) is Child


def test_tensors_of_every_kind_say_that_they_are_tensors():
    x = torch.ones(2, dtype=torch.complex64)
    kinds = [x.conj(), x.conj().imag, torch.ones(2, device="meta"), torch.ones(2).to_sparse(),
             torch.quantize_per_tensor(torch.ones(2), 1.0, 0, torch.quint8)]
    for tensor in kinds:
        assert tensor.__class__ is torch.Tensor and isinstance(tensor, torch.Tensor)
        assert copy.copy(tensor).__class__ is copy.deepcopy(tensor).__class__ is torch.Tensor
        assert pickle.loads(pickle.dumps(tensor)).__class__ is torch.Tensor

    class Own(torch.Tensor):
        pass

    assert x.conj().as_subclass(Own).__class__ is Own
    assert torch.ones(2, device="meta").as_subclass(Own).__class__ is Own
