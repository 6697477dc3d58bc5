"""The callables in C do what the Python closures that they stand in front of do."""
import contextlib
import copy
import gc
import inspect
import os
import pickle
import re
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import flambeau
from flambeau import kernels
from flambeau.core.calling import fast
from flambeau.core.op import table
from flambeau.dispatch.function import Function

needs_native = pytest.mark.skipif(fast.native is None, reason="without the native extension")
DTYPES = [flambeau.bool, flambeau.uint8, flambeau.int32, flambeau.int64, flambeau.float16,
          flambeau.bfloat16, flambeau.float32, flambeau.float64, flambeau.complex64,
          flambeau.complex128]


def closure_of(function):
    return function.twin                    # of a function that is declared by its schema


def outcome(call, *args, **kwargs):
    """Everything that can be seen of a call: values, layout, graph, or what was raised."""
    try:
        r = call(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)
    if not isinstance(r, flambeau.Tensor):
        return r
    node = r.grad_fn
    seen = [r._array.tobytes(), r.dtype, r.shape, r.stride(), r.requires_grad, r._version,
            r._base is None, type(r)]
    if node is not None:
        seen += [node.name(), node.shape, node.dtype,
                 [None if e is None else type(e) for e in node.edges],
                 [describe(s) for s in node.saved]]
    return seen


def describe(saved):
    if isinstance(saved, (tuple, list)):
        return [describe(s) for s in saved]
    if isinstance(saved, flambeau.Tensor):
        return saved.shape, saved.dtype, saved._version
    return saved.tobytes() if isinstance(saved, np.ndarray) else saved


def sample(dtype, shape=(2, 3), grad=False):
    x = (flambeau.arange(6) % 5 + 1).reshape(2, 3).to(dtype)
    x = x if shape == (2, 3) else x.reshape(-1)[:1].reshape(shape)
    return x.requires_grad_() if grad and (dtype.is_floating_point or dtype.is_complex) else x


@needs_native
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "eq", "maximum", "atan2"])
def test_binary_ops_equal_their_closures(name, dtype, grad):
    function = table[name].function
    closure = closure_of(function)
    assert closure is not function
    others = [sample(dtype, grad=grad), sample(dtype), sample(dtype, (1,)), sample(dtype, ()),
              sample(flambeau.float32), flambeau.ones(7, dtype=dtype), 2, 2.5, True, 0, -1, 10**12,
              2.0**-140, 1e300, float("nan"), 1j, "text", None]
    for other in others:
        x = sample(dtype, grad=grad)
        assert repr(outcome(function, x, other)) == repr(outcome(closure, x, other)), other
        if isinstance(other, flambeau.Tensor):
            assert repr(outcome(function, other, x)) == repr(outcome(closure, other, x))


@needs_native
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["sin", "neg", "exp", "abs", "sqrt", "floor", "isnan", "tanh"])
def test_unary_ops_equal_their_closures(name, dtype):
    function = table[name].function
    closure = closure_of(function)
    for grad in (False, True):
        base = sample(dtype, grad=grad)
        for x in (base, base.t(), base[:, ::2], base[0, 0], base.expand(4, 2, 3)):
            assert repr(outcome(function, x)) == repr(outcome(closure, x))
            with flambeau.no_grad():
                assert repr(outcome(function, x)) == repr(outcome(closure, x))


@needs_native
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_inplace_ops_equal_their_closures(name, dtype):
    function = getattr(flambeau.Tensor, f"{name}_")
    closure = closure_of(function)

    def both(make, other):
        assert repr(outcome(function, make(), other)) == repr(outcome(closure, make(), other))
    others = [sample(dtype), sample(dtype, ()), sample(flambeau.float32), 3, 2.5, True,
              flambeau.ones(7), sample(dtype, grad=True), None]
    for other in others:
        both(lambda: sample(dtype), other)
        both(lambda: sample(dtype).t(), other)
        both(lambda: sample(dtype, grad=True), other)
        both(lambda: sample(dtype)[0], other)
        both(lambda: sample(dtype, (1,)).expand(4), other)


X, Y = flambeau.arange(6.0).reshape(2, 3) + 1, flambeau.linspace(-1, 1, 6).reshape(2, 3)
WHOLE = flambeau.tensor([[0, 1, 2], [1, 1, 0]], dtype=flambeau.int16)
# functions that write, with what they get before it; of methods the first is a copy
WRITES = [
    ("cat", ([X, Y],), (4, 3)), ("cat", ([X, flambeau.empty(0), Y], 1), (2, 6)),
    ("stack", ([X, Y], -1), (2, 3, 2)), ("vstack", ([X, Y],), (4, 3)),
    ("vstack", ([X, X.clone().requires_grad_()],), (4, 3)),
    ("vstack", ([X, Y[0], Y[:, 0]],), (4, 3)), ("outer", (X[0], Y[0]), (3, 3)),
    ("mvlgamma", (X + 1, 2), (2, 3)), ("nanmean", (X, 1), (2,)), ("svd", (X,), (2, 2)),
    ("take_along_dim", (X, WHOLE, 0), (2, 3)), ("take_along_dim", (X, WHOLE.long(), 0), (2, 3)),
    ("exp", (X[:0],), (0, 3)), ("mm", (X[:0], X.t()), (0, 2)), ("clamp", (X, WHOLE, None), (2, 3)),
    ("clamp", (X, Y, X.half()), (2, 3)), ("clamp", (X, 1j), (2, 3)),
    ("clamp", (X, WHOLE, 2), (2, 3)), ("zeros", (2, 3), (2, 3)), ("full", ((2, 3), 7), (2, 3)),
    ("eye", (2, 3), (2, 3)), ("arange", (1, 7), (6,)), ("linspace", (0, 1, 5), (5,)),
    ("logspace", (0, 2, 3), (3,)), ("empty", (0,), (0,)), ("ones", (-1,), (1,)),
    ("eye", (-1,), (1,))]
IN_PLACE = [
    ("eq_", (X, WHOLE)), ("logical_not_", (WHOLE,)), ("isnan", (X,)), ("lt_", (WHOLE, 1)),
    ("square_", (X,)), ("square_", (X.t(),)), ("square_", (X[:0],)), ("exp_", (X[:0],)),
    ("ldexp_", (X, WHOLE)), ("ldexp_", (WHOLE, X)), ("mvlgamma_", (X + 1, 2)),
    ("mvlgamma_", (WHOLE, 2)), ("renorm_", (X, 2, 0, 1.0)), ("renorm_", (X, 2, 5, 1.0)),
    ("scatter_", (X, 0, WHOLE.long() % 2, Y)), ("clamp_", (X, WHOLE, None)),
    ("clamp_", (WHOLE, X)), ("mul_", (WHOLE, True))]


@needs_native
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
@pytest.mark.parametrize("name, args, shape", WRITES, ids=[w[0] for w in WRITES])
def test_out_is_written_as_by_the_closures(name, args, shape):
    function = getattr(flambeau, name)

    def outs():
        for dtype in (flambeau.float32, flambeau.float64, flambeau.int32):
            yield lambda dtype=dtype: flambeau.full(shape, 9, dtype=dtype)
        yield lambda: flambeau.full((*shape, 2), 9.0)[..., 0]
        yield lambda: flambeau.full((1,), 9.0).expand(shape)
        yield lambda: flambeau.full((7, 7), 9.0)
        yield lambda: flambeau.full(shape, 9.0, requires_grad=True)
        yield lambda: tuple([flambeau.full(s, 9.0) for s in ((2, 2), (2,), (3, 2))])
    for make in outs():
        for enabled in (True, False):
            with flambeau.set_grad_enabled(enabled):
                seen = []
                for call in (function, function.twin):
                    out = make()
                    found = outcome(call, *args, out=out)
                    seen.append(repr((found, out, getattr(out, "_version", None))))
            assert seen[0] == seen[1]


@needs_native
@pytest.mark.parametrize("name, args", IN_PLACE, ids=[w[0] for w in IN_PLACE])
def test_tensors_are_written_to_as_by_the_closures(name, args):
    method = getattr(flambeau.Tensor, name)
    for grad in (False, True):
        for make in (lambda x: x.clone(), lambda x: flambeau.stack([x, x], -1)[..., 1]):
            seen = []
            for call in (method, closure_of(method)):
                tensor = make(args[0])
                rest = [a.clone().requires_grad_() if grad and isinstance(a, flambeau.Tensor)
                        and a.is_floating_point() else a for a in args[1:]]
                found = outcome(call, tensor, *rest)
                seen.append(repr((found, tensor, tensor._version)))
            assert seen[0] == seen[1]


@needs_native
@pytest.mark.skipif(os.environ.get("FLAMBEAU_FAST") == "0", reason="without C")
def test_common_writes_are_done_in_c(monkeypatch):
    calls = [lambda o: flambeau.cat([X, flambeau.empty(0)], 1, out=o),
             lambda o: flambeau.vstack([X[0], Y[0]], out=o), lambda o: flambeau.zeros(2, 3, out=o),
             lambda o: flambeau.mvlgamma(X, 1, out=o), lambda o: flambeau.clamp(X, WHOLE),
             lambda o: o.eq_(X), lambda o: o.square_(), lambda o: flambeau.selu_(o),
             lambda o: flambeau.exp(X[:0], out=o[:0]), lambda o: flambeau.add(X, 2, out=o)]
    out = X.clone()
    for call in calls:
        call(out)                                       # what is made at the first call

    def reached(self, args, kwargs):
        raise AssertionError(f"{self.name} is called in Python")
    monkeypatch.setattr(Function, "call", reached)
    for call in calls:
        call(out.fill_(3.0))


@needs_native
def test_views_and_joins_equal_their_closures():
    for grad in (False, True):
        x = sample(flambeau.float32, grad=grad)
        for args in [(3, 2), (-1,), ((6,),), ([2, -1],), (flambeau.Size((3, 2)),), (4,), (-1, -1),
                     (0, -1), (2, 3, 1), (True, 6), (flambeau.int32,), (2**40, 2**40), (), ((),)]:
            for name in ("view", "reshape"):
                function = getattr(flambeau.Tensor, name)
                for y in (x, x.t(), x[1], x.view(6)):
                    seen, expected = (outcome(f, y, *args) for f in (function,
                                                                    closure_of(function)))
                    assert repr(seen) == repr(expected), (name, args)
        closure = closure_of(flambeau.cat)
        for tensors in [[x, x], (x, x.detach()), [x], [], [x, x.double()], [x, x.t()], [x, 1], x,
                        [x, flambeau.ones(0)], [flambeau.ones(())], [flambeau.ones(0, 3), x]]:
            for kwargs in ({}, {"dim": 1}, {"dim": -2}, {"dim": 5}, {"axis": 1}):
                seen = outcome(flambeau.cat, tensors, **kwargs)
                assert repr(seen) == repr(outcome(closure, tensors, **kwargs)), (tensors, kwargs)


@needs_native
def test_new_tensors_equal_their_closures():
    for name in ("zeros", "empty", "ones"):
        function = getattr(flambeau, name)
        for args in [(2, 3), ((2, 3),), ([2],), (), ((),), (0,), (-1,), (True,), (2.0,), (2, "a")]:
            seen, expected = outcome(function, *args), outcome(closure_of(function), *args)
            assert seen[1:] == expected[1:], (name, args)
    assert flambeau.zeros(2, dtype=flambeau.int64).dtype is flambeau.int64
    with flambeau.device("meta"):
        assert flambeau.zeros(2).device.type == "meta"
    flambeau.set_default_dtype(flambeau.float64)
    try:
        assert flambeau.zeros(2).dtype is flambeau.float64
        assert flambeau.tensor([1.5, 2]).dtype is flambeau.float64
    finally:
        flambeau.set_default_dtype(flambeau.float32)
    with flambeau.inference_mode():
        assert flambeau.zeros(2).is_inference()


@needs_native
def test_nested_lists():
    read = fast.read_numbers
    float32 = np.dtype(np.float32)
    for data in ([1, 2], [1.5, 2], [[1.0], [2.0]], ((1, 2), [3, 4]), [[[0.1]]], [1e300, -0.0]):
        array, expected = read(data, float32), np.array(data)
        with np.errstate(over="ignore"):
            expected = expected.astype(np.int64 if expected.dtype.kind == "i" else np.float32)
        assert array.dtype == expected.dtype and array.tobytes() == expected.tobytes()
    for data in ([], [[]], [1, [2]], [[1], 2], [[1], [2, 3]], [True], [1j], [2**70], ["a"], [None],
                 [np.float32(1)], 1.0, "12"):
        assert read(data, float32) is None
    assert read([1.5], np.dtype(np.float16)) is None


@needs_native
def test_a_callable_is_like_a_function():
    mul = table["mul"].function
    assert flambeau.mul is mul and mul.op is flambeau.Tensor.mul.op is table["mul"]
    assert mul.__name__ == "mul" and mul.__doc__ == "The product."
    assert list(inspect.signature(mul).parameters) == ["input", "other", "out"]
    assert list(inspect.signature(flambeau.transpose).parameters) == ["input", "dim0", "dim1"]
    x = flambeau.ones(2)
    assert x.mul.__self__ is x and (x.mul(2) == 2).all()
    assert copy.deepcopy(mul) is mul and weakref.ref(mul)() is mul
    assert mul.__reduce__() == "mul" and "mul" in repr(mul)
    mul.mark = 1
    assert mul.mark == 1
    del mul.mark
    assert inspect.isroutine(mul) and callable(mul)


def test_a_callable_is_pickled_by_name():
    code = ("import flambeau.as_torch, torch, pickle\n"
            "assert pickle.loads(pickle.dumps(torch.mul)) is torch.mul")
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


WITHOUT_C = ("FLAMBEAU_FAST=0", "FLAMBEAU_KERNELS=reference")


def printed(code, *settings):
    """What a fresh interpreter prints with these settings in its environment."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("FLAMBEAU_FAST", "FLAMBEAU_KERNELS")}
    environment.update(setting.split("=") for setting in settings)
    return subprocess.run([sys.executable, "-c", code], check=True, env=environment,
                          stdout=subprocess.PIPE, text=True).stdout


@pytest.mark.parametrize("setting", WITHOUT_C)
def test_without_c_everything_is_there(setting):
    printed("""
import flambeau
from flambeau.core.calling import fast
assert fast.native is None
x = flambeau.ones(2, 3, requires_grad=True)
flambeau.cat([(x * 2).view(3, 2), flambeau.zeros(1, 2)]).sum().backward()
assert x.grad.tolist() == [[2.0] * 3] * 2
assert flambeau.ones(2).zero_().tolist() == flambeau.zero_(flambeau.ones(2)).tolist() == [0, 0]
flambeau.nn.BatchNorm2d(2)(flambeau.ones(2, 2, 1, 1)).sum().backward()
""", setting)


@needs_native
@pytest.mark.parametrize("setting", WITHOUT_C)
def test_functions_and_methods_look_the_same_without_c(setting):
    code = """
import warnings
import flambeau
from flambeau.core.op import public
warnings.simplefilter("ignore")
from flambeau.ops import load
load()

def look(where, x):
    print(where, callable(x), *(getattr(x, a, None) for a in ("__name__", "__module__")),
          *(hasattr(x, a) for a in ("op", "__wrapped__", "takes_more", "is_member")))

for space, names in public.items():
    for name, function in names.items():
        look(f"{space}.{name}", function)
for name, member in list(vars(flambeau.Tensor).items()):
    if callable(member) and hasattr(member, "__get__"):
        look(f"Tensor.{name}", getattr(flambeau.Tensor, name))
        look(f"tensor.{name}", member.__get__(flambeau.ones(2), flambeau.Tensor))
"""
    here, there = (set(found.splitlines()) for found in (printed(code), printed(code, setting)))
    assert len(here) > 1000
    assert here == there


@needs_native
def test_subclasses_and_levels_see_every_call():
    class Loud(flambeau.Tensor):
        calls = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    x = flambeau.ones(2).as_subclass(Loud)
    y = flambeau.ones(2)
    for call in (lambda: y + x, lambda: x.sin(), lambda: x.view(2, 1), lambda: flambeau.cat([y, x]),
                 lambda: y.add_(x)):
        before = len(Loud.calls)
        call()
        assert len(Loud.calls) > before
    parameter = flambeau.nn.Parameter(y)
    assert type(parameter * 1) is flambeau.Tensor and (parameter * 1).requires_grad


@needs_native
def test_nothing_is_kept_alive():
    x = flambeau.randn(3, 4, requires_grad=True)
    y = flambeau.ones(3, 4)
    before = [sys.getrefcount(o) for o in (x, y, x._array, y._array)]

    def work():
        z = (x * y + 2).sin().exp().view(-1)[2:].view(2, 5)
        flambeau.cat([z, z * z], 1).sum().backward()
        x.grad = None
        y.mul_(1).add_(y)
        for bad in (lambda: x + flambeau.ones(7), lambda: x.view(5), lambda: y.mul_("a")):
            with pytest.raises((RuntimeError, TypeError)):
                bad()
        return weakref.ref(z), weakref.ref(z.grad_fn)

    gc.disable()
    try:
        for _ in range(20):
            alive = work()
        assert [r() for r in alive] == [None, None]        # by counting alone
        assert [sys.getrefcount(o) for o in (x, y, x._array, y._array)] == before
    finally:
        gc.enable()


@needs_native
def test_the_graph_is_freed_without_recursion_and_runs_in_threads():
    def chain():
        x = flambeau.ones(2, requires_grad=True)
        y = x
        for _ in range(2000):
            y = y * 1.0 + 0.0
        y.sum().backward()
        grads.append(x.grad.tolist())
    grads = []
    threads = [threading.Thread(target=chain) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert grads == [[1.0, 1.0]] * 4


@needs_native
def test_a_write_to_saved_memory_is_noticed():
    x = flambeau.ones(2, requires_grad=True)
    y = x * 2
    z = y * y
    y.add_(flambeau.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.sum().backward()
    e = x.exp()
    e.view(2, 1).mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        e.sum().backward()


@needs_native
@pytest.mark.parametrize("name", ["mul", "div", "add", "sub", "atan2"])
def test_derivatives_equal_their_closures(name):
    apply = table[name].Backward.__dict__["apply"]
    for dtype in (flambeau.float32, flambeau.complex64)[:1 if name == "atan2" else 2]:
        for other in (sample(dtype, grad=True), sample(dtype)):
            result = table[name].function(sample(dtype, grad=True), other)
            node, grad = result.grad_fn, flambeau.ones_like(result).detach()
            with flambeau.no_grad():
                ours, theirs = apply(node, grad), apply.__wrapped__(node, grad)
            assert len(ours) == len(theirs) == 2
            assert all(a is b or (a == b).all() for a, b in zip(ours, theirs))


def test_kernels_know_c():
    assert (fast.native is None) or fast.native is kernels._native


def test_pickle_of_results():
    x = flambeau.ones(2) + 1
    assert pickle.loads(pickle.dumps(x)).tolist() == [2.0, 2.0]


def test_numbers_minus_tensors():
    """`1 - x` is one op, with its own node, in all types."""
    x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    y = 1 - x
    assert y.grad_fn.name() == "RsubBackward1" and y.tolist() == [0, -1]
    y.sum().backward()
    assert x.grad.tolist() == [-1, -1]
    assert (1.5 - flambeau.tensor([1])).tolist() == [0.5]
    assert (2j - x).dtype is flambeau.complex64
    with pytest.raises(RuntimeError, match="with a bool tensor is not supported"):
        1 - flambeau.tensor([True])
    with pytest.raises(TypeError):
        "a" - x


@pytest.mark.parametrize("number", [1, 2.5, 0.0])
def test_complex_numbers_without_imaginary_part_are_complex(number):
    """Whatever number equal to it has been used before."""
    x = flambeau.ones(2)
    for function in (flambeau.Tensor.mul, flambeau.Tensor.add, flambeau.Tensor.div):
        with contextlib.suppress(ZeroDivisionError):
            function(x, number)
            assert function(x, complex(number)).dtype is flambeau.complex64
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.mul_(complex(number))


@needs_native
def test_methods_that_are_kept_name_the_type_of_their_tensor():
    x, p = flambeau.ones(3), flambeau.nn.Parameter(flambeau.ones(3))
    kept, of_parameter = x.abs, p.abs
    for call, said in (
            (lambda: x.abs(1), "TensorBase.abs() takes no arguments (1 given)"),
            (lambda: kept(1), "Tensor.abs() takes no arguments (1 given)"),
            (lambda: kept(a=1), "Tensor.abs() takes no keyword arguments"),
            (lambda: of_parameter(*range(9)), "Parameter.abs() takes no arguments (9 given)")):
        with pytest.raises(TypeError, match=re.escape(said)):
            call()
    assert kept.__self__ is x and kept.__qualname__ == "Tensor.abs" and kept == x.abs != p.abs
    assert kept.__name__ == "abs" and next(iter(inspect.signature(x.sum).parameters)) == "dim"
    assert pickle.loads(pickle.dumps(kept))().tolist() == [1] * 3
    assert x.add.__call__(*[1], alpha=2).tolist() == [3] * 3 and hash(kept) == hash(x.abs)
    with pytest.raises(TypeError, match="argument 'other'"):
        x.add.__call__("a")
