"""`Variable`, the old name of tensors."""
import pytest

import flambeau as torch
from flambeau.autograd import Variable


def test_a_variable_is_a_tensor_on_the_same_memory():
    x = torch.ones(2)
    v = Variable(x, requires_grad=True)
    assert type(v) is torch.Tensor and v.requires_grad and v.data_ptr() == x.data_ptr()
    assert isinstance(x, Variable) and not isinstance(3, Variable)
    assert Variable().shape == (0,)


def test_misuse():
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got int"):
        Variable(3)
    with pytest.raises(TypeError, match="'foo' is an invalid keyword argument for this function"):
        Variable(torch.ones(2), foo=True)
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect."):
        Variable(torch.ones(2), volatile=True)
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype can"):
        Variable(torch.ones(2, dtype=torch.int64), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"is deprecated, use torch.tensor"):
        torch.autograd.variable(3)


def test_callbacks_of_the_engine():
    seen = []
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: Variable._execution_engine.queue_callback(lambda: seen.append(1)))
    y.backward()
    assert seen == [1]
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward"):
        Variable._execution_engine.queue_callback(print)
