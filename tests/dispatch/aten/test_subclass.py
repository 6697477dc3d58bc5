"""Subclasses that take over ops by `__torch_dispatch__`."""
import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from flambeau.utils._pytree import tree_map, tree_map_only

seen = []


class Logged(torch.Tensor):
    """Wraps a tensor, and logs what is done with it."""

    @staticmethod
    def __new__(cls, elem):
        result = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
            dtype=elem.dtype, device=elem.device, requires_grad=elem.requires_grad)
        result.elem = elem.detach() if result.requires_grad else elem
        return result

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self):
        return f"Logged({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        seen.append(str(func).removeprefix("aten.").removesuffix(".default"))
        args, kwargs = tree_map_only(cls, lambda t: t.elem, (args, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t,
                        func(*args, **kwargs))


class Two(torch.Tensor):
    """Two tensors that go the same way."""

    @staticmethod
    def __new__(cls, a, b, size=None, stride=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.size() if size is None else size, dtype=a.dtype,
            strides=a.stride() if stride is None else stride, requires_grad=a.requires_grad)

    def __init__(self, a, b, size=None, stride=None):
        self.a, self.b = a, b

    def __repr__(self):
        return f"Two({self.a}, {self.b})"

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Two(inner["a"], inner["b"], size, stride)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        first, second = (
            func(*tree_map_only(cls, get, args), **tree_map_only(cls, get, kwargs or {}))
            for get in (lambda t: t.a, lambda t: t.b))
        if isinstance(first, torch.Tensor):
            found = cls(first, second)
        elif isinstance(first, (tuple, list)):
            found = type(first)(map(cls, first, second))
        else:
            found = first
        return return_and_correct_aliasing(func, args, kwargs, found)


def values(x):
    return x.a.tolist(), x.b.tolist()


def two(*shape, by=(1.0, 3.0)):
    return Two(*[torch.full(shape, v) for v in by])


@pytest.mark.parametrize("call, names", [
    (lambda x: x + x, "add.Tensor"),
    (lambda x: torch.ones(2, 2) + x, "add.Tensor"),
    (lambda x: 1 - x, "rsub.Scalar"),
    (lambda x: x.view(-1), "view"),
    (lambda x: x[0], "select.int"),
    (lambda x: x.softmax(0), "_softmax"),
    (lambda x: F.linear(x, x), "t mm"),
    (lambda x: F.layer_norm(x, (2,)), "native_layer_norm"),
    (lambda x: x.to(torch.float64), "_to_copy"),
    (lambda x: torch.cat([x, x]), "cat"),
    (lambda x: x.add_(1), "add_.Tensor"),
    (lambda x: torch.zeros_like(x), "zeros_like"),
    (lambda x: x.new_zeros(2), "new_zeros"),
    (lambda x: x.detach(), "detach"),
    (lambda x: x.split(1)[1], "split.Tensor"),
])
def test_ops_reach_the_type(call, names):
    x = Logged(torch.rand(2, 2))
    elem = x.elem.clone()
    seen.clear()
    result = call(x)
    assert " ".join(seen) == names and type(result) is Logged
    expected = call(elem)
    assert result.shape == expected.shape == result.elem.shape
    assert result.dtype == expected.dtype and torch.allclose(result.elem, expected)


@pytest.mark.parametrize("call, name, expected", [
    (lambda x: x.sum().item(), "_local_scalar_dense", 4.0),
    (lambda x: bool(x.sum() > 0), "_local_scalar_dense", True),
    (lambda x: torch.equal(x, x), "equal", True),
    (lambda x: torch.allclose(x, x), "allclose", True)])
def test_values_come_from_the_type(call, name, expected):
    assert call(Logged(torch.ones(2, 2))) == expected
    assert seen[-1] == name


def test_nobody_is_asked_when_one_is_made():
    class Watched(torch.Tensor):
        asked = []

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.asked.append(func)
    made = [torch.Tensor._make_wrapper_subclass(Watched, (2,), requires_grad=True),
            torch.Tensor._make_subclass(Watched, torch.ones(2), True)]
    assert not Watched.asked
    with torch._C.DisableTorchFunctionSubclass():
        assert all(x.requires_grad and x.is_leaf for x in made)
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        torch.Tensor._make_wrapper_subclass(Watched, (2,), dtype=torch.int32, requires_grad=True)


def test_values_that_a_wrapper_does_not_have():
    for name in ("numpy", "tolist"):
        with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
            getattr(Logged(torch.ones(2)), name)()


def test_gradients_are_of_the_type_too():
    plain = torch.rand(2, 2, requires_grad=True)
    x = Logged(plain.detach().requires_grad_())
    seen.clear()
    (x * x).exp().sum().backward()
    (plain * plain).exp().sum().backward()
    assert type(x.grad) is Logged and torch.allclose(x.grad.elem, plain.grad)
    assert seen[:2] == ["mul.Tensor", "exp"] and seen.count("mul.Tensor") == 4
    first, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    assert torch.allclose(second.elem, 6 * plain)


def test_wrappers_of_two():
    x = two(2, 2)
    assert values(x @ x) == ([[2.0] * 2] * 2, [[18.0] * 2] * 2)
    assert x.add_(1) is x and values(x[0]) == ([2.0] * 2, [4.0] * 2)
    assert x.view(-1)._base is x
    x[0] = 7.0
    assert x.a[0, 0] == x.b[0, 1] == 7
    out = two(2, 2)
    assert torch.mul(x, 2, out=out) is out and out.b[1, 1] == 8
    assert is_traceable_wrapper_subclass(x)
    assert values(transform_subclass(x, lambda name, t: t * 2)) == values(x * 2)
    assert values(copy.deepcopy(x)) == values(x)


def test_a_layer_learns_with_wrapped_weights():
    layer = nn.Linear(2, 1, bias=False)
    layer.weight = nn.Parameter(two(1, 2))
    assert isinstance(layer.weight, nn.Parameter) and type(layer.weight) is Two
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    layer(torch.ones(1, 2)).pow(2).sum().backward()
    assert values(layer.weight.grad) == ([[4.0, 4.0]], [[12.0, 12.0]])
    optimizer.step()
    assert values(layer.weight) == ([[-1.0, -1.0]], [[-3.0, -3.0]])


def test_modes_come_before_types():
    names = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append((str(func), types))
            return func(*args, **(kwargs or {}))
    seen.clear()
    with Mode():
        result = Logged(torch.ones(2)) + 1
    assert names[0] == ("aten.ones.default", ())
    assert ("aten.add.Tensor", (Logged,)) in names
    assert seen == ["add.Tensor"] and type(result) is Logged


def test_a_type_that_gives_up():
    class Silent(Logged):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented
    with pytest.raises(TypeError, match="Multiple dispatch failed for"):
        torch.add(Silent(torch.ones(2)), 1)
    with pytest.raises(TypeError, match="unsupported operand type"):
        Silent(torch.ones(2)) + 1


def test_transforms_go_around_types():
    x = Logged(torch.arange(6.0).view(3, 2))
    assert torch.allclose(torch.func.vmap(lambda row: row * 2)(x).elem, x.elem * 2)


@pytest.mark.parametrize("function", [
    lambda x: x.masked_fill(x > 0, 2.0), lambda x: x.clamp(-0.5, 0.5),
    lambda x: F.binary_cross_entropy_with_logits(x, x.detach()), lambda x: F.layer_norm(x, (3,)),
    lambda x: F.gelu(x), lambda x: F.cross_entropy(x, Logged(torch.tensor([0, 2]))
                                                   if isinstance(x, Logged)
                                                   else torch.tensor([0, 2])),
    lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None],
                                             is_causal=True)])
def test_gradients_come_from_the_values_inside(function):
    values = torch.tensor([[0.3, -1.0, 2.0], [-0.2, 0.7, -3.0]])
    plain, wrapped = values.clone().requires_grad_(), Logged(values.clone()).requires_grad_()
    function(plain).sum().backward()
    function(wrapped).sum().backward()
    torch.testing.assert_close(wrapped.grad.elem, plain.grad)


def test_samples_and_slices_of_everything_are_shown():
    x = Logged(torch.full((2, 2), 0.5))
    for call, name in ((torch.bernoulli, "bernoulli"), (torch.poisson, "poisson"),
                       (lambda x: torch.normal(x, 1.0), "normal.Tensor_float"),
                       (lambda x: x[:], "slice.Tensor")):
        seen.clear()
        assert isinstance(call(x), Logged) and seen[-1] == name
    seen.clear()
    assert isinstance(torch.ops.aten.mul.Tensor(x, 2), Logged) and seen == ["mul.Tensor"]


@pytest.mark.parametrize("function", [
    lambda x, w: (x * w).sum(), lambda x, w: x.exp().sum(), lambda x, w: F.linear(x, w).sum(),
    lambda x, w: (x.softmax(0) * w).sum(), lambda x, w: x.tanh().mul(w).max()])
def test_hooks_of_saved_tensors_see_instances(function):
    values = [torch.randn(3, 3, generator=torch.Generator().manual_seed(i)) for i in range(2)]
    plain = [v.clone().requires_grad_() for v in values]
    function(*plain).backward()
    given = [Logged(v.clone().requires_grad_()) for v in values]
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t.elem, Logged):
        found = function(*given)
    assert kept and all(type(t) is Logged for t in kept)
    found.backward()
    for g, p in zip(given, plain):
        if p.grad is not None:
            torch.testing.assert_close(g.grad.elem, p.grad)


def test_devices_and_modules_of_instances():
    x = Logged(torch.ones(2, device="meta"))
    assert x.is_meta and not torch.zeros_like(x, device="cpu").elem.is_meta
    assert not x.new_full((3,), 2, device="cpu").elem.is_meta

    class Flat(Two):
        pass
    layer = nn.Linear(1, 1)
    layer.weight = nn.Parameter(Flat(torch.ones(1, 1), torch.ones(1, 1)))
    weight = layer.weight
    layer.double()
    assert layer.weight is weight and weight.dtype is weight.a.dtype is torch.float64
    assert isinstance(weight, nn.Parameter) and weight.requires_grad


def test_formulas_of_the_backward_pass_ask_the_type_inside_forward_mode():
    """The gradient of a sum is expanded by its formula, no public call: forward mode over reverse
    mode of such tensors gave zeros."""
    import flambeau.autograd.forward_ad as forward_ad
    x, tangent = Logged(torch.randn(3)), Logged(torch.ones(3))
    x = x.detach().requires_grad_()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tangent)
        grad, = torch.autograd.grad((3 * dual ** 2).sum(), dual, create_graph=True)
        second = forward_ad.unpack_dual(grad).tangent
    assert torch.equal(second.elem, torch.full((3,), 6.0))
