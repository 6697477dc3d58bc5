"""What is assigned to a part of a tensor."""
import numpy as np
import pytest

import flambeau as torch
from flambeau.ops.indexing.values import as_value, without_ones


@pytest.mark.parametrize("value, expected", [
    (2, 2.0), (True, 1.0), (1.5, 1.5), (np.int32(3), 3.0), (np.float64(0.5), 0.5),
    (torch.tensor(4), 4.0)])
def test_numbers(value, expected):
    x = torch.zeros(2, 3)
    x[0, 1] = value
    assert x.tolist() == [[0, expected, 0], [0, 0, 0]]


def test_a_bool_of_numpy_is_refused_as_pytorch_does():
    with pytest.raises(TypeError, match=r"can.t assign a numpy\.bool to a torch\.FloatTensor"):
        torch.zeros(3)[0] = np.bool_(True)


def test_the_tensor_has_the_type_of_the_target():
    assert as_value(1, torch.zeros(1, dtype=torch.int8)).dtype is torch.int8
    assert as_value(True, torch.zeros(1)).item() == 1.0
    value = torch.ones(2)
    assert as_value(value, torch.zeros(1)) is value


def test_what_is_no_number_is_refused():
    x = torch.zeros(3)
    for value, name in (("a", "str"), (None, "NoneType"), (np.float32(1), "numpy.float32")):
        with pytest.raises(TypeError, match=f"can't assign a {name} to a torch.FloatTensor"):
            x[0] = value
    with pytest.raises(ValueError, match="Overflow when unpacking long"):
        x[0] = 2 ** 63


@pytest.mark.parametrize("shape, left", [
    ((1, 1, 3), (3,)), ((1, 2, 1), (2, 1)), ((2, 1), (2, 1)), ((1, 1), ()), ((), ())])
def test_leading_ones_do_not_count(shape, left):
    assert tuple(without_ones(torch.zeros(shape)).shape) == left
    x = torch.zeros(2, *left)
    x[1] = torch.ones(shape)
    assert x[1].eq(1).all() and x[0].eq(0).all()


def test_values_broadcast():
    x = torch.zeros(2, 3)
    x[:, 1:] = torch.tensor([5.0, 6.0])
    assert x.tolist() == [[0, 5, 6], [0, 5, 6]]
    x[...] = torch.tensor([[[1.0], [2.0]]])
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]]
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(3\) must match"):
        x[0] = torch.ones(2)


def test_gradients_of_what_is_assigned():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.zeros(3, 2)
    x[1:] = w.view(1, 1, 2)
    (x * torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert w.grad.tolist() == [8.0, 10.0]
