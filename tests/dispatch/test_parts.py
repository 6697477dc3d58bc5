"""Ops with a kernel that are also made of other ops, and kernels that check their arguments."""
import numpy as np
import pytest

import flambeau
import flambeau.nn.functional as F
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.core.op import public, table
from flambeau.dispatch.declaration import op
from flambeau.func import jvp, vmap
from flambeau.utils._python_dispatch import TorchDispatchMode


@pytest.fixture(scope="module")
def halved_square():
    """x² / 2 and x³, of which the kernel says nothing about derivatives."""
    calls = []

    def kernel(x):
        calls.append(x.shape)
        return x * x / 2, x ** 3
    function = op("halved_square(Tensor self) -> (Tensor, Tensor)", kernel=kernel, out=False,
                  parts=lambda self: (self * self / 2, self ** 3), function=False, method=False)
    function.calls = calls
    yield function
    del table["halved_square"]


def test_the_kernel_runs_and_the_parts_are_differentiated(halved_square):
    x = flambeau.tensor([1.0, 3.0], dtype=flambeau.float64, requires_grad=True)
    halved, cubed = halved_square(x)
    assert halved_square.calls == [(2,)]
    assert halved.tolist() == [0.5, 4.5] and cubed.tolist() == [1.0, 27.0]
    (halved + cubed).sum().backward()
    assert x.grad.tolist() == [1.0 + 3.0, 3.0 + 27.0]
    assert gradcheck(halved_square, (x,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(halved_square, (x,))


def test_transforms_run_the_parts(halved_square):
    before = len(halved_square.calls)
    rows = flambeau.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert vmap(halved_square)(rows)[1].equal(rows ** 3)
    values, tangents = jvp(halved_square, (rows,), (flambeau.ones(2, 2),))
    assert values[0].equal(rows * rows / 2) and tangents[0].equal(rows)
    assert len(halved_square.calls) == before


@pytest.fixture
def shifted_square():
    """x² + shift, of which users see the product and the sum; the kernel keeps 2 x."""
    ran = []

    def backward(grad, needs, doubled, shift):
        ran.append(needs)
        return grad * doubled
    function = op("shifted_square(Tensor self, float shift) -> (Tensor result, Tensor doubled)",
                  kernel=lambda self, shift: (self * self + shift, 2 * self), backward=backward,
                  parts=lambda self, shift: (self * self + shift, None), implicit=True, out=False,
                  returns=tuple, differentiable=(True, False), function=False, method=False)
    function.ran = ran
    yield function
    del table["shifted_square"]


def test_a_kernel_gives_the_gradients_where_no_graph_of_them_is_wanted(shifted_square):
    x = flambeau.tensor([1.0, 3.0], dtype=flambeau.float64, requires_grad=True)
    y, doubled = shifted_square(x, 1.5)
    assert y.tolist() == [2.5, 10.5] and not doubled.requires_grad
    assert flambeau.autograd.grad(y.sum(), x)[0].tolist() == [2.0, 6.0]
    assert shifted_square.ran == [[True]]
    assert gradcheck(lambda x: shifted_square(x, 1.5)[0], (x,), check_forward_ad=True)
    ran = len(shifted_square.ran)
    assert gradgradcheck(lambda x: shifted_square(x, 1.5)[0], (x,))
    assert len(shifted_square.ran) == ran


def test_users_see_the_parts(shifted_square):
    x = flambeau.tensor([1.0, 3.0], requires_grad=True)
    node = shifted_square(x, 1.5)[0].grad_fn
    assert node.name() == "AddBackward0"
    assert node.next_functions[0][0].name() == "MulBackward0"
    names = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))
    with Log():
        y = shifted_square(x, 1.5)[0]
    assert names == ["mul", "add"] and y.requires_grad


X = flambeau.arange(2.0 * 4 * 6 * 6).reshape(2, 4, 6, 6) / 7 % 3
W = flambeau.arange(4.0 * 4 * 3 * 3).reshape(4, 4, 3, 3) / 5 % 2 - 0.5
B = flambeau.tensor([0.5, -1.0, 2.0, 0.0])
OFFSETS, ROWS = flambeau.tensor([0, 2, 2]), flambeau.tensor([1, 0, 3, 3])
CALLS = {
    "conv": lambda f: f(X, W, B, (2, 1), (1, 0), (1, 2), False, (0, 0), 1),
    "transposed": lambda f: f(X, W, B, [2], [1], [1], True, [1], 1),
    "grouped": lambda f: f(X, W[:, :2], None, (1, 1), (0, 0), (1, 1), False, (0, 0), 2),
    "layer_norm": lambda f: f(X, (6, 6), None, X[0, 0], 1e-5),
    "group_norm": lambda f: f(X, B, None, 2, 4, 36, 2, 1e-5),
    "batch_norm": lambda f: f(X, B, B, flambeau.zeros(4), flambeau.ones(4), True, 0.1, 1e-5),
    "evaluated": lambda f: f(X, None, None, B, B + 2, False, 0.1, 1e-5),
    "avg_pool": lambda f: f(X, (3, 2), (), (1, 0), True, False, None),
    "max_pool": lambda f: f(X, 3, 2, 1, 1, True),
    "adaptive": lambda f: f(X, (3, 4)),
    "nearest": lambda f: f(X, (9, 4), 1.5, None),
    "bilinear": lambda f: f(X, (9, 4), True, None, None),
    "unfold": lambda f: f(X, (2, 3), (1, 2), (1, 1), (2, 1)),
    "fold": lambda f: f(X.reshape(2, 4, 36)[:, :, :25], (6, 6), (2, 2), (1, 1), (0, 0), (1, 1)),
    "bags": lambda f: f(W[0, 0], ROWS % 3, OFFSETS, False, 1, False, None, False, -1),
    "maxima": lambda f: f(W[0, 0], ROWS % 3, OFFSETS, False, 2, False, None, False, 0),
    "reflect": lambda f: f(X, (1, 2, 0, 3)),
    "shuffle": lambda f: f(X, 2),
}
OPS = {"conv": "convolution", "transposed": "convolution", "grouped": "convolution",
       "layer_norm": "native_layer_norm", "group_norm": "native_group_norm",
       "batch_norm": "native_batch_norm", "evaluated": "native_batch_norm",
       "avg_pool": "avg_pool2d", "max_pool": "max_pool2d_with_indices",
       "adaptive": "_adaptive_avg_pool2d", "nearest": "upsample_nearest2d",
       "bilinear": "upsample_bilinear2d", "unfold": "im2col", "fold": "col2im",
       "bags": "_embedding_bag", "maxima": "_embedding_bag", "reflect": "reflection_pad2d",
       "shuffle": "pixel_shuffle"}


@pytest.mark.parametrize("case", CALLS)
def test_compiled_kernels_that_check_give_what_the_twins_give(case):
    function = table[OPS[case]].published
    found = CALLS[case](function)
    wanted = CALLS[case](getattr(function, "twin", function))
    for one, other in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, wanted)]):
        assert one.shape == other.shape and one.dtype is other.dtype
        np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-5, 1e-6)


@pytest.mark.parametrize("call, said", [
    (lambda: F.conv2d(X, W[:, :3]), "to have 3 channels, but got 4 channels instead"),
    (lambda: F.avg_pool2d(X, 2, padding=2), "pad should be at most half of effective kernel size"),
    (lambda: F.layer_norm(X, (5,)), "expected input with shape"),
    (lambda: F.interpolate(X, (0, 2)), "Input and output sizes should be greater than 0"),
    (lambda: F.unfold(X, 9), "its components must be at least one"),
    (lambda: F.pad(X, (6, 0, 0, 0), "reflect"), "Padding size should be less than"),
    (lambda: public["nn.functional"]["one_hot"](ROWS, 2), "Class values must be smaller than"),
])
def test_what_compiled_kernels_leave_alone_is_refused_in_words(call, said):
    with pytest.raises(RuntimeError, match=said):
        call()
