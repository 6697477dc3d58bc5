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
    lib.impl("scale", lambda x, n=2, neg=False: -x * n if neg else x * n, "CPU")
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
    assert library.get_kernel(f"{space}::f", "CPU").call_boxed(None, 1) == 2
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
        '(Tensor(a0!) x, SymInt n, Tensor? y=None, *, SymInt[] s, str t="a") -> (Tensor, Tensor)')


def test_overloads_of_a_library(space):
    lib = library.Library(space, "DEF")
    assert lib.define("f(Tensor x, int n=2) -> Tensor") == "f"
    assert lib.define("f.out(Tensor x, int n=2, *, Tensor(a!) out) -> Tensor(a!)") == "f"
    op = getattr(flambeau.ops, space).f
    assert op.overloads() == ["default", "out"] and op.out.name() == f"{space}::f.out"
    assert str(op.default._schema) == f"{space}::f(Tensor x, int n=2) -> Tensor"
    with pytest.raises(NotImplementedError, match=f"Could not run '{space}::f'"):
        op(flambeau.ones(1))
    lib.impl("f", lambda x, n=2: x * n, "CPU")
    lib.impl("f.out", lambda x, n=2, *, out: out.copy_(x * n), "CPU")
    x, out = flambeau.ones(2), flambeau.zeros(2)
    assert op(x).tolist() == [2, 2] and op(x, 3, out=out) is out and out.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        op(x, "a")
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'm' for operator"):
        op.default(x, m=3)
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'int' for argument 'n' but "
                                           r"instead found type 'str'.\nPosition: 1\nValue: 'a'"):
        op.default(x, "a")
    leaf = flambeau.ones(2, requires_grad=True)         # no rule: the graph goes through the kernel
    op(leaf, 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3]
    lib._destroy()
    with pytest.raises(AttributeError, match="has no attribute 'f'"):
        getattr(flambeau.ops, space).f


def test_rules_that_come_before_the_op(space):
    with pytest.raises(RuntimeError, match=f"operator {space}::late does not exist"):
        library.register_fake(f"{space}::late", lambda x: x.new_empty(3))
    library.impl(f"{space}::late", "cpu", lambda x: x[:3] * 1)
    library.define(f"{space}::late", "(Tensor x) -> Tensor")
    library.register_fake(f"{space}::late", lambda x: x.new_empty(3))
    op = getattr(flambeau.ops, space).late
    assert op(flambeau.ones(5)).shape == op(flambeau.ones(5, device="meta")).shape == (3,)


def test_lists_and_keywords(space):
    @library.custom_op(f"{space}::mix", mutates_args=())
    def mix(xs: list[Tensor], y: Tensor, *, k: float = 1.0) -> Tensor:
        return sum(xs) * y * k
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.append(len(inputs))
        ctx.k, ctx.count = keyword_only_inputs["k"], len(inputs[0])
    mix.register_autograd(lambda ctx, grad: ([grad * ctx.k] * ctx.count, None),
                          setup_context=setup)
    a, b = flambeau.ones(2, requires_grad=True), flambeau.ones(2)
    mix([a, b], b, k=2.0).sum().backward()
    assert a.grad.tolist() == [2, 2] and seen == [2]
    mix.register_autograd(lambda ctx, grad: [grad], setup_context=setup)
    with pytest.raises(RuntimeError, match="same structure as the inputs"):
        mix([a, b], b).sum().backward()


def test_what_is_written_to(space):
    @library.custom_op(f"{space}::add_one", mutates_args=("y",))
    def add_one(x: Tensor, y: Tensor) -> Tensor:
        y.add_(1)
        return x + y
    y = flambeau.zeros(2)
    assert add_one(flambeau.ones(2), y).tolist() == [2, 2] and y.tolist() == [1, 1]
    assert y._version == 2
    with pytest.raises(RuntimeError, match="for non-functional operator"):
        add_one.register_autograd(lambda ctx, grad: (grad, None))

    @library.custom_op(f"{space}::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x
    with pytest.raises(RuntimeError, match="must not also be an input"):
        same(y)


def test_modes_see_registered_ops(square, space):
    from flambeau.utils._python_dispatch import TorchDispatchMode
    seen = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))
    square.register_autograd(lambda ctx, grad: (grad, None))
    x = flambeau.ones(2, requires_grad=True)
    with Log():
        found = square(x, 3.0)
    assert found.requires_grad and seen[0] is getattr(flambeau.ops, space).square.default

    @library.register_torch_dispatch(f"{space}::square", Log)
    def _(mode, func, types, args, kwargs):
        return args[0] * 0
    with Log():
        assert square(flambeau.ones(1)).tolist() == [0]


def test_a_graph_kernel(space):
    lib = library.Library(space, "FRAGMENT")
    lib.define("cube(Tensor x) -> Tensor")
    lib.impl("cube", lambda x: x ** 3, "CompositeExplicitAutograd")

    class Cube(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            with flambeau._C._AutoDispatchBelowAutograd():
                return getattr(flambeau.ops, space).cube(x)

        @staticmethod
        def backward(ctx, grad):
            return 3 * ctx.saved_tensors[0] ** 2 * grad
    lib.impl("cube", Cube.apply, "Autograd")
    x = flambeau.tensor([2.0], requires_grad=True)
    found = getattr(flambeau.ops, space).cube(x)
    found.backward()
    assert found.item() == 8 and x.grad.item() == 12 and "Cube" in type(found.grad_fn).__name__


def test_checks(square, space):
    x = flambeau.ones(2)
    with pytest.raises(library.opcheck.__globals__["OpCheckError"], match="test_faketensor failed"):
        library.opcheck(square, (x,), test_utils="test_faketensor")
    square.register_fake(lambda x, k=2.0: flambeau.empty_like(x))
    chosen = ("test_schema", "test_autograd_registration", "test_faketensor")
    assert library.opcheck(square, (x,), test_utils=chosen) == dict.fromkeys(chosen, "SUCCESS")

    @library.custom_op(f"{space}::liar", mutates_args=())
    def liar(x: Tensor) -> Tensor:
        return x.add_(1).clone()
    found = library.opcheck(liar, (x,), test_utils="test_schema", raise_exception=False)
    assert "not defined as mutable but was mutated" in str(found["test_schema"])


def test_namespaces():
    assert repr(flambeau.ops) == "<module 'torch.ops' from '_ops.py'>"
    assert repr(flambeau.ops.nowhere) == "<module 'torch.ops.nowhere' from 'torch.ops'>"
    with pytest.raises(AttributeError, match="'_OpNamespace' 'nowhere' object has no attribute"):
        flambeau.ops.nowhere.f
    with pytest.raises(AttributeError, match=r"'aten\.add' has no overload name 'nope'"):
        flambeau.ops.aten.add.nope
    with pytest.raises(OSError, match="Could not load this library: /nowhere"):
        flambeau.ops.load_library("/nowhere.so")
    flambeau.ops.import_module("math")
    assert str(flambeau.ops.aten.add.Tensor._schema) == (
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    assert flambeau.ops.aten.add.overloads() == ["Scalar", "Scalar_out", "Tensor", "out"]
    assert flambeau.Tag.pointwise in flambeau.ops.aten.add.Tensor.tags


def test_types_in_schemas():
    schema = flambeau._C.parse_schema(
        "s::f.o(Tensor(a!)[] x, SymInt? q=3, Dict(str, Tensor) d=None, *, bool[3] m) -> "
        "(Tensor(a!) r, int)")
    assert (schema.name, schema.overload_name, len(schema.returns)) == ("s::f", "o", 2)
    x, q, _, m = schema.arguments
    assert [str(a.type) for a in schema.arguments] == [
        "List[Tensor]", "Optional[int]", "Dict[str, Tensor]", "List[bool]"]
    assert x.is_write and x.type.kind() == "ListType" and q.default_value == 3 and m.N == 3
    assert str(flambeau.ops.aten.zeros.default._schema.arguments[1].real_type) == \
        "Optional[ScalarType]"
    with pytest.raises(RuntimeError, match="only the operator name was given"):
        flambeau._C.parse_schema("f")


def test_a_kernel_for_autocast_goes_on_below_it():
    own = flambeau.library.Library("below_autocast", "DEF")
    own.define("double(Tensor x) -> Tensor")
    own.impl("double", lambda x: 2 * x, "CompositeImplicitAutograd")
    keys = flambeau._C.DispatchKeySet(flambeau._C.DispatchKey.AutocastCPU)

    def in_single(x):
        with flambeau._C._ExcludeDispatchKeyGuard(keys):
            return flambeau.ops.below_autocast.double(x.float())
    own.impl("double", in_single, "AutocastCPU")
    x = flambeau.ones(2, dtype=flambeau.bfloat16)
    assert flambeau.ops.below_autocast.double(x).dtype is flambeau.bfloat16
    with flambeau.autocast("cpu"):
        assert flambeau.ops.below_autocast.double(x).dtype is flambeau.float32
        assert flambeau.is_autocast_enabled("cpu")
    assert flambeau._C.DispatchKeySet is flambeau.DispatchKeySet


def test_a_composite_with_a_kernel_of_shapes():
    own = flambeau.library.Library("composite_on_meta", "DEF")
    own.define("count(Tensor x) -> Tensor")
    own.impl("count", lambda x: flambeau.tensor(x.tolist()), "CompositeImplicitAutograd")
    own.impl("count", lambda x: x.new_empty(x.shape), "Meta")
    assert flambeau.ops.composite_on_meta.count(flambeau.ones(2)).tolist() == [1.0, 1.0]
    assert flambeau.ops.composite_on_meta.count(flambeau.ones(2, device="meta")).shape == (2,)


def test_a_kernels_own_defaults(space):
    """What is left out at the end of a call, the kernel fills in; types are shown as numbers."""
    library = flambeau.library.Library(space, "FRAGMENT")

    def kernel(x, dtype=flambeau.float32, device=flambeau.device("cpu"), scale=1.5):
        return flambeau.full_like(x, scale, dtype=dtype, device=device)

    schema = "(Tensor x, ScalarType dtype=float32, Device device='cpu', float scale=1.5) -> Tensor"
    library.define("filled" + schema)
    library.impl("filled", kernel, "CompositeExplicitAutograd")
    filled = getattr(flambeau.ops, space).filled
    assert str(filled.default._schema).endswith(
        "(Tensor x, ScalarType dtype=6, Device device=cpu, float scale=1.5) -> Tensor")
    x = flambeau.ones(2, dtype=flambeau.int64)
    assert filled(x).dtype is flambeau.float32
    assert filled(x, flambeau.float64, scale=2.0).tolist() == [2.0, 2.0]


def test_a_kernel_that_must_not_be_replaced(space):
    library = flambeau.library.Library(space, "FRAGMENT")
    library.define("f(Tensor x) -> Tensor")
    library.impl("f", lambda x: x + 1, "CPU")
    library.impl("f", lambda x: x + 2, "CPU")
    with pytest.raises(RuntimeError, match="already a kernel registered"):
        library.impl("f", lambda x: x + 3, "CPU", allow_override=False)
    assert getattr(flambeau.ops, space).f(flambeau.ones(1)).item() == 3.0
