"""torch.library: ops of one's own, their derivatives, and other kernels for aten's."""
from __future__ import annotations

import itertools

import pytest

import flambeau
from flambeau import Tensor, library
from flambeau.core import modes

numbers = itertools.count()


@pytest.fixture
def space():
    return f"test_space_{next(numbers)}"


@pytest.fixture
def square(space):
    @library.custom_op(f"{space}::square", mutates_args=())
    def square(x: Tensor, k: float = 2.0) -> Tensor:
        return x * x * k
    return square


def test_calls(square, space):
    x = flambeau.tensor([3.0])
    op = getattr(flambeau.ops, space).square
    assert square(x).item() == 18.0 and op(x, 1.0).item() == 9.0 and op.default(x, k=3).item() == 27
    assert repr(square) == f"<CustomOpDef({space}::square)>"
    assert repr(op) == f"<OpOverloadPacket(op='{space}.square')>"
    assert square._schema == "(Tensor x, float k=2.0) -> Tensor"
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x'"):
        op(3)
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        op()
    with pytest.raises(AttributeError, match="object has no attribute 'nope'"):
        getattr(flambeau.ops, space).nope


def test_derivative(square):
    x = flambeau.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        square(x).sum().backward()

    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.k = inputs[1]
    square.register_autograd(lambda ctx, grad: (2 * grad * ctx.saved_tensors[0] * ctx.k, None),
                             setup_context=setup)
    square(x).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    assert flambeau.autograd.gradcheck(square, (flambeau.rand(3, dtype=flambeau.float64,
                                                              requires_grad=True),))


def test_shapes_and_batches(square):
    with pytest.raises(NotImplementedError, match="no fake implementation"):
        square(flambeau.ones(2, device="meta"))

    @square.register_fake
    def _(x, k=2.0):
        return flambeau.empty_like(x)
    assert square(flambeau.ones(2, device="meta")).shape == (2,)
    x = flambeau.arange(6.0).reshape(3, 2)
    assert flambeau.equal(flambeau.vmap(square)(x), 2 * x * x)

    @square.register_vmap
    def _(info, in_dims, x, k):
        return square(x, k) + 1, in_dims[0]
    assert flambeau.equal(flambeau.vmap(square)(x), 2 * x * x + 1)


def test_libraries(space):
    lib = library.Library(space, "DEF")
    assert lib.define("scale(Tensor x, int n=2, *, bool neg=False) -> Tensor") == "scale"
    op = getattr(flambeau.ops, space).scale
    with pytest.raises(NotImplementedError, match="Could not run"):
        op(flambeau.ones(1))
    lib.impl("scale", lambda x, n, neg=False: -x * n if neg else x * n, "CPU")
    assert op(flambeau.ones(1), 3).item() == 3.0 and op(flambeau.ones(1), neg=True).item() == -2.0
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("scale(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        library.Library(space, "DEF")
    with pytest.raises(ValueError, match="Unsupported kind: WHAT"):
        library.Library(space, "WHAT")
    part = library.Library(space, "FRAGMENT")
    part.define("twice(Tensor x) -> Tensor")
    part.impl("twice", lambda x: x * 2)
    x = flambeau.ones(1, requires_grad=True)
    getattr(flambeau.ops, space).twice(x).backward()
    assert x.grad.item() == 2.0
    lib._destroy()
    assert not hasattr(getattr(flambeau.ops, space), "scale")


def test_functions(space):
    library.define(f"{space}::f", "(Tensor x) -> Tensor")

    @library.impl(f"{space}::f", "cpu")
    def f(x):
        return x + 1
    assert getattr(flambeau.ops, space).f(flambeau.ones(1)).item() == 2.0
    assert library.get_kernel(f"{space}::f", "CPU") is f
    library.register_autocast(f"{space}::f", "cpu", flambeau.bfloat16)
    with flambeau.autocast("cpu"):
        assert getattr(flambeau.ops, space).f(flambeau.ones(1)).dtype is flambeau.bfloat16


def test_other_kernels_for_aten():
    before = list(modes.interceptors)
    lib = library.Library("aten", "IMPL")
    lib.impl("exp", lambda x: x * 0 + 7, "CPU")
    lib.impl("div.Tensor", lambda a, b: a * b.reciprocal(), "CPU")
    try:
        x = flambeau.tensor([1.0, 3.0], requires_grad=True)
        y = flambeau.tensor([2.0, 4.0])
        assert (x / y).tolist() == [0.5, 0.75] and flambeau.exp(x).tolist() == [7.0, 7.0]
        flambeau.exp(x).sum().backward()
        assert x.grad.tolist() == [7.0, 7.0]         # the derivative stays: it is the result
    finally:
        lib._destroy()
    assert flambeau.exp(flambeau.zeros(1)).item() == 1.0 and modes.interceptors == before


def test_schemas():
    def f(x: Tensor, n: int, y: Tensor | None = None, *, s: list[int], t: str = "a") -> tuple[
            Tensor, Tensor]: ...
    with pytest.raises(ValueError, match="must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())
    f.__annotations__ = {"x": Tensor, "n": int, "y": Tensor | None, "s": list[int], "t": str,
                         "return": tuple[Tensor, Tensor]}
    assert library.infer_schema(f, mutates_args={"x"}) == (
        '(Tensor(a!) x, SymInt n, Tensor? y=None, *, SymInt[] s, str t="a") -> (Tensor, Tensor)')
