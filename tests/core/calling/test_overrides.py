"""Who takes a call over: what a subclass is handed, and the order in which all are asked."""

import numpy as np
import pytest

import flambeau
from flambeau.core.modes import Level, interceptors
from flambeau.nn import functional as F
from flambeau.overrides import TorchFunctionMode


@pytest.mark.parametrize("call, name", [
    (lambda t: flambeau.add(t, 1), "flambeau.add"),
    (lambda t: flambeau.sub(t, 1, alpha=2), "flambeau.sub"),
    (lambda t: t[0], "flambeau.Tensor.__getitem__"),
    (lambda t: t.add_(1), "flambeau.Tensor.add_"),
    (lambda t: flambeau.sum(t), "flambeau.sum"),
    (lambda t: flambeau.stack([t, t]), "flambeau.stack"),
])
def test_the_function_handed_over_is_the_one_users_name(call, name):
    seen = []

    class Watching(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    result = call(flambeau.ones(3).as_subclass(Watching))
    expected = flambeau
    for part in name.split(".")[1:]:
        expected = getattr(expected, part)
    assert seen[0] is expected
    assert type(result) is Watching


def test_a_mode_takes_over_functions_that_make_tensors():
    seen = []

    class Watch(flambeau.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))
    with Watch():
        flambeau.tensor([1.0, 2.0]), flambeau.zeros(2), flambeau.arange(3), flambeau.eye(2)
        flambeau.full((2,), 1.0)
    assert seen == [flambeau.tensor, flambeau.zeros, flambeau.arange, flambeau.eye, flambeau.full]


MEMBERS = [
    (lambda t: t.shape, "Tensor.shape.__get__"),
    (lambda t: t.T, "Tensor.T.__get__"),
    (lambda t: t.dtype, "Tensor.dtype.__get__"),
    (lambda t: t.grad, "Tensor.grad.__get__"),
    (lambda t: t.data, "Tensor.data.__get__"),
    (lambda t: setattr(t, "grad", None), "Tensor.grad.__set__"),
    (lambda t: t.size(0), "Tensor.size"),
    (lambda t: t.dim(), "Tensor.dim"),
    (lambda t: t[0], "Tensor.__getitem__"),
    (lambda t: t.__setitem__(0, 1.0), "Tensor.__setitem__"),
    (lambda t: len(t), "Tensor.__len__"),
    (lambda t: t + 1, "Tensor.add"),
    (lambda t: 1 - t, "Tensor.__rsub__"),
    (lambda t: 1 / t, "Tensor.__rtruediv__"),
    (lambda t: t ** 2, "Tensor.__pow__"),
    (lambda t: 2 ** t, "Tensor.__rpow__"),
    (lambda t: t // 2, "Tensor.__floordiv__"),
    (lambda t: 2 % t, "Tensor.__rmod__"),
    (lambda t: t == t, "Tensor.__eq__"),
    (lambda t: t < t, "Tensor.lt"),
    (lambda t: -t, "Tensor.neg"),
    (lambda t: ~t.bool(), "Tensor.bool Tensor.__invert__"),
    (lambda t: t.bool() & True, "Tensor.bool Tensor.__and__"),
    (lambda t: t @ t, "Tensor.matmul"),
    (lambda t: np.asarray(t), "Tensor.__array__"),
    (lambda t: t._version, "Tensor._version.__get__"),
    (lambda t: t.sum().item(), "Tensor.sum Tensor.item"),
    (lambda t: float(t[0, 0]), "Tensor.__getitem__ Tensor.__float__"),
    (lambda t: repr(t), "Tensor.__repr__"),
    (lambda t: t.double(), "Tensor.double"),
    (lambda t: t.detach(), "Tensor.detach"),
    (lambda t: flambeau.stack([t, t]), "stack"),
    (lambda t: flambeau.einsum("ij->i", t), "functional.einsum"),
    (lambda t: flambeau.linalg.inv(t), "linalg.inv"),
    (lambda t: F.relu(t), "nn.functional.relu"),
]


def names(seen):
    return " ".join(flambeau.overrides.resolve_name(f).removeprefix("torch.") for f in seen)


@pytest.mark.parametrize("call, expected", MEMBERS)
def test_modes_and_types_see_members(call, expected):
    seen = []

    class Mode(flambeau.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Type(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    t = flambeau.eye(2)
    with Mode():
        call(t)
    assert names(seen) == expected
    typed = flambeau.eye(2).as_subclass(Type)
    seen.clear()
    call(typed)
    assert names(seen) == expected
    seen.clear()
    with flambeau._C.DisableTorchFunctionSubclass():
        call(typed)
    call(t)                                 # no mode any more
    assert not seen


def test_members_are_what_they_were_after_a_mode():
    before = dict(vars(flambeau.Tensor))
    with flambeau.overrides.BaseTorchFunctionMode():
        with flambeau.overrides.BaseTorchFunctionMode():
            assert flambeau.Tensor.shape is before["shape"]
            assert flambeau.ones(2).shape == (2,) and flambeau.ones(2).size() == (2,)
        assert vars(flambeau.Tensor)["shape"] is not before["shape"]
    after = vars(flambeau.Tensor)
    assert all(after[name] is member for name, member in before.items())


def test_a_mode_replaces_what_members_say():
    class Mode(flambeau.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func == flambeau.Tensor.shape.__get__:
                return "no shape"
            return func(*args, **(kwargs or {}))
    with Mode():
        assert flambeau.ones(2).shape == "no shape" and flambeau.ones(2).ndim == 1


def test_functions_that_can_be_overridden():
    found = flambeau.overrides.get_overridable_functions()
    assert flambeau.Tensor.shape.__get__ in found[flambeau.Tensor]
    assert flambeau.Tensor.add_ in found[flambeau.Tensor] and flambeau.stack in found[flambeau]
    assert F.relu in found[F] and flambeau.is_tensor not in found[flambeau]
    dummies = flambeau.overrides.get_testing_overrides()
    assert dummies[flambeau.stack]([]) == -1
    assert flambeau.overrides.is_tensor_method_or_property(flambeau.Tensor.size)
    assert flambeau.overrides.is_tensor_method_or_property(flambeau.Tensor.shape.__get__)
    assert not flambeau.overrides.is_tensor_method_or_property(F.relu)
    assert flambeau.overrides.resolve_name(print) is None
    assert flambeau.overrides.resolve_name(flambeau.ops.aten.add.Tensor) == "aten.add.Tensor"


class Base(flambeau.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append((cls.__name__, [t.__name__ for t in types]))
        return NotImplemented


class Derived(Base):
    pass


class Other(flambeau.Tensor):
    __torch_function__ = classmethod(Base.__torch_function__.__func__)


asked = []


@pytest.mark.parametrize("classes, order", [
    ([Base, Derived], ["Derived", "Base"]), ([Derived, Base], ["Derived", "Base"]),
    ([Base, Other], ["Base", "Other"]), ([Other, Base, Derived], ["Other", "Derived", "Base"]),
    ([Base, Other, Derived], ["Derived", "Base", "Other"]), ([Base, Base], ["Base"]),
])
def test_subclasses_are_asked_before_their_bases_and_else_from_left_to_right(classes, order):
    tensors = [flambeau.ones(2).as_subclass(cls) for cls in classes]
    calls = [lambda: flambeau.stack(tensors), lambda: flambeau.cat(tensors=tensors)]
    calls.append(lambda: (flambeau.add if len(tensors) == 2 else flambeau.lerp)(*tensors))
    for call in calls:
        asked.clear()
        with pytest.raises(TypeError):
            call()
        assert asked == [(name, order) for name in order]


def test_handlers_see_the_calls_that_users_make_and_no_others():
    """The check of arguments asks the tensors of a handler nothing."""
    seen = []

    class Watched(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return super().__torch_function__(function, types, args, kwargs or {})
    x = flambeau.ones(2).as_subclass(Watched)
    for name, call in {
        "mse_loss": lambda: flambeau.nn.functional.mse_loss(x, x),
        "softmax": lambda: flambeau.nn.functional.softmax(x, 0),
        "huber_loss": lambda: flambeau.nn.functional.huber_loss(x, x),
    }.items():
        seen.clear()
        call()
        assert seen == [name]


def test_what_overrides_functions_is_asked_as_out_too():
    seen = []

    class Container:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func.__name__, sorted(kwargs or {})))
            return "own"

    x, own = flambeau.ones(2), Container()
    assert flambeau.stack([own, own], 0, out=own) == flambeau.cat([x, x], out=own) == "own"
    assert flambeau.zeros_like(own) == flambeau.full_like(own, 3, dtype=flambeau.int64) == "own"
    assert seen == [("stack", ["out"]), ("cat", ["out"]), ("zeros_like", []),
                    ("full_like", ["dtype"])]


def test_a_subclass_is_made_of_a_tensor_of_any_type():
    class Sub(flambeau.Tensor):
        pass

    whole = flambeau.arange(3)
    made = Sub(whole)
    assert type(made) is Sub and made.dtype == flambeau.int64
    assert made.data_ptr() == whole.data_ptr() and type(Sub.__new__(Sub, whole)) is Sub
    x = flambeau.ones(2, requires_grad=True)
    flambeau.Tensor(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert flambeau.Tensor(flambeau.ones(2, device="meta")).is_meta


def test_types_that_answer_below_do_not_override_functions():
    class Below(flambeau.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Both(Below):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs)

    class Above(flambeau.Tensor):
        pass

    disabled = flambeau._C._disabled_torch_function_impl
    assert Below.__torch_function__ is disabled
    assert Both.__torch_function__ is not disabled and Above.__torch_function__ is not disabled


def test_of_one_subclass_as_another():
    class One(flambeau.Tensor):
        pass

    class Seen(flambeau.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    x = flambeau.ones(2).as_subclass(One)
    assert type(x.as_subclass(flambeau.Tensor)) is flambeau.Tensor
    assert type(x.as_subclass(Seen)) is Seen and type(x.as_subclass(Seen).as_subclass(One)) is One
    assert not Seen.calls


class Named(Level):
    def __init__(self, name, seen):
        self.name, self.seen = name, seen

    def __call__(self, op, args):
        self.seen.append((self.name, op.name))
        return op.call(*args)


def test_levels_are_asked_innermost_first():
    seen = []
    with Named("outer", seen), Named("inner", seen):
        flambeau.ones(1).exp()
    assert seen == [("inner", "exp"), ("outer", "exp")] and not interceptors


def test_modes_of_functions_come_before_types_and_types_before_levels():
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append("mode")
            return func(*args, **(kwargs or {}))

    class Asked(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append("type")
            return super().__torch_function__(func, types, args, kwargs)

    x = flambeau.ones(2).as_subclass(Asked)
    with Named("level", seen), Mode():
        y = flambeau.exp(x)
    assert seen[:3] == ["mode", "type", ("level", "exp")] and type(y) is Asked


def test_results_are_stored_where_they_are_to_go():
    """`out=` of an op, of one that is made of others and of one that makes a tensor."""
    seen, x = [], flambeau.tensor([1.0, 2.0])
    with Named("level", seen):
        for call in (lambda out: flambeau.exp(x, out=out), lambda out: flambeau.diff(x, out=out),
                     lambda out: flambeau.zeros(2, out=out)):
            out = flambeau.empty(0)
            assert call(out) is out and out.numel() == len(call(None))
