"""What every op with samples has to pass: values and gradients as PyTorch's, derivatives as
differences have them, batching, layouts, in place, `out=`, and what it is shown as.

A test file with a `family` of samples gets these tests by a class of its own:

    class TestSamples(SampleTests):
        family = family
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import json

import numpy as np
import pytest
import samples
from samples import HERE, as_tensors, flat_tensors

import flambeau
from flambeau import func
from flambeau.core import op as core_op
from flambeau.dispatch.declaration import Declaration
from flambeau.ops.overlap import is_dense
from flambeau.utils._python_dispatch import TorchDispatchMode


class Oracle:
    """What PyTorch gave for the samples of a family."""

    def __init__(self, family):
        self.index, self.numbers = {}, np.zeros(0)
        path = HERE.parent / "data" / "ops" / f"{family.replace('/', '_')}.npz"
        if path.exists():
            with np.load(path) as data:
                self.index, self.numbers = json.loads(data["index"].tobytes()), data["numbers"]

    def array(self, entry):
        """An array that was recorded, and the name of its type."""
        dtype, shape, start = entry
        n = int(np.prod(shape))
        if dtype.startswith("complex"):
            parts = self.numbers[start:start + 2 * n].reshape(-1, 2)
            return dtype, (parts[:, 0] + 1j * parts[:, 1]).reshape(shape)
        return dtype, self.numbers[start:start + n].reshape(shape)


oracle_of = functools.cache(Oracle)


def compare(found, wanted, what, tolerance=1.0):
    dtype, array = wanted
    assert str(found.dtype) == f"torch.{dtype}", f"{what}: type {found.dtype}, expected {dtype}"
    assert tuple(found.shape) == array.shape, f"{what}: {tuple(found.shape)}, not {array.shape}"
    ours = found.detach()._array
    ours = ours.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
    rough = 1e-5 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(ours, array, rtol=rough * tolerance, atol=rough * tolerance,
                               err_msg=what)


def resolve(name):
    """The public function of that name; also of a namespace that has no module of its own."""
    space, _, last = name.rpartition(".")
    if space in core_op.public:
        return core_op.public[space][last]
    return samples.resolve(flambeau, name)


def call_of(name, sample):
    """The results of a call, and the floating tensors it depends on."""
    leaves = []
    args = as_tensors(flambeau, sample.args, leaves)
    kwargs = as_tensors(flambeau, sample.kwargs, leaves)
    inputs = [t for i, t in enumerate(leaves)
              if (t.is_floating_point() or t.is_complex()) and i not in sample.constant]
    for t in inputs:
        t.requires_grad_()
    return flat_tensors(flambeau, resolve(name)(*args, **kwargs)), inputs


def seeds_for(results):
    return [flambeau.tensor(samples.weights(tuple(r.shape), i, r.is_complex()), dtype=r.dtype)
            for i, r in enumerate(results)]


def gradients(results, inputs, **options):
    return flambeau.autograd.grad(results, inputs, seeds_for(results), allow_unused=True, **options)


class Problem:
    """A call as a real function of the floating arguments: F(x) = Σ weights · results."""

    def __init__(self, name, sample):
        self.function = resolve(name)
        self.sample = sample
        leaves = []
        as_tensors(flambeau, [sample.args, sample.kwargs], leaves)
        self.floating = [i for i, t in enumerate(leaves)
                         if (t.is_floating_point() or t.is_complex())
                         and i not in sample.constant]
        self.point = [leaves[i] for i in self.floating]
        rng = np.random.RandomState(5)
        self.direction = [flambeau.tensor(
            rng.randn(*t.shape) + (1j * rng.randn(*t.shape) if t.is_complex() else 0),
            dtype=t.dtype) for t in self.point]

    def results(self, *point):
        """The differentiable results of the call at `point`."""
        values = iter(range(10**6))
        chosen = dict(zip(self.floating, point))

        def fill(value):
            if isinstance(value, np.ndarray):
                i = next(values)
                return chosen[i] if i in chosen else flambeau.tensor(value)
            if isinstance(value, (tuple, list)):
                return type(value)([fill(v) for v in value])
            if isinstance(value, dict):
                return {k: fill(v) for k, v in value.items()}
            return as_tensors(flambeau, value)

        args, kwargs = fill(self.sample.args), fill(self.sample.kwargs)
        found = flat_tensors(flambeau, self.function(*args, **kwargs))
        return tuple(r for r in found if r.is_floating_point() or r.is_complex())

    def value(self, *point):
        """The weighted sum of the results, a real number."""
        total = 0
        for result, w in zip(results := self.results(*point), seeds_for(results)):
            term = (result * w.conj()).sum()
            total = total + (term.real if term.is_complex() else term)
        return total

    def gradient(self, *point, create=False):
        """The gradient of `value` in each argument; zeros where it does not depend on one."""
        point = [p if p.requires_grad else p.clone().requires_grad_() for p in point]
        total = self.value(*point)
        if not isinstance(total, flambeau.Tensor) or not total.requires_grad:
            return None
        found = flambeau.autograd.grad(total, point, create_graph=create, allow_unused=True)
        return [flambeau.zeros_like(p) if g is None else g for g, p in zip(found, point)]

    def shifted(self, step):
        return [p + step * d for p, d in zip(self.point, self.direction)]


def inner(a, b):
    """Re <a, b> over lists of tensors."""
    return sum(float((x.detach() * y.detach().conj()).sum().real if x.is_complex()
                     else (x.detach() * y.detach()).sum()) for x, y in zip(a, b))


EPS = 1e-5


def close(found, wanted, what, tolerance=1.0):
    assert np.isfinite(found), f"{what}: {found}"
    assert abs(found - wanted) <= 2e-6 * tolerance * (1 + abs(wanted)), \
        f"{what}: {found!r}, differences give {wanted!r}"


def second_order(problem, what, tolerance):
    point = [p.clone().requires_grad_() for p in problem.point]
    gradient = problem.gradient(*point, create=True)
    ahead, behind = (problem.gradient(*problem.shifted(s * EPS)) for s in (1, -1))
    turned = [flambeau.tensor(samples.weights(tuple(g.shape), 3, g.is_complex()), dtype=g.dtype)
              for g in gradient]
    numeric = (inner(ahead, turned) - inner(behind, turned)) / (2 * EPS)
    along = func.jvp(lambda *p: tuple(func.grad(problem.value, tuple(range(len(p))))(*p)),
                     tuple(problem.point), tuple(problem.direction))[1]
    close(inner(along, turned), numeric, f"{what}: forward over reverse", tolerance)
    live = [(g, t) for g, t in zip(gradient, turned) if g.requires_grad]
    found = [None] * len(point)
    if live:
        found = flambeau.autograd.grad([g for g, _ in live], point, [t for _, t in live],
                                       allow_unused=True)
    twice = sum(inner([f], [d]) for f, d in zip(found, problem.direction) if f is not None)
    close(twice, numeric, f"{what}: reverse over reverse", tolerance)


def same(found, wanted, what):
    assert len(found) == len(wanted), what
    for f, w in zip(found, wanted):
        assert f.dtype is w.dtype and tuple(f.shape) == tuple(w.shape), \
            f"{what}: {f.dtype} {tuple(f.shape)}, expected {w.dtype} {tuple(w.shape)}"
        np.testing.assert_allclose(f.detach()._array.astype(np.complex128),
                                   w.detach()._array.astype(np.complex128), rtol=1e-9, atol=1e-9,
                                   err_msg=what)


def scattered(value):
    """A tensor with the same elements, two apart in memory and in another order of dimensions."""
    if not isinstance(value, flambeau.Tensor) or not value.ndim:
        return value
    wide = np.repeat(value._array.T, 2, axis=0)
    return flambeau.from_numpy(wide)[::2].permute(*reversed(range(value.ndim)))


def geometry(results):
    """Shapes, types and layouts; of dimensions of one element the stride says nothing."""
    return [(tuple(r.shape), r.dtype, r.requires_grad,
             [s for s, n in zip(r.stride(), r.shape) if n > 1 and r.numel()]) for r in results]


def out_in_rows(function, args):
    """Is an empty `out=` laid out row by row, and not as the result is? None: nothing is said."""
    declared = getattr(getattr(function, "twin", None), "declaration", None)
    if not isinstance(declared, Declaration):
        return None
    said = declared.out_rows
    return said(*args) if callable(said) else said is True


def on_device(device, name, sample, layout):
    """The results of a call on tensors that have been laid out so and moved there."""
    leaves = []
    args, kwargs = (as_tensors(flambeau, x, leaves) for x in (sample.args, sample.kwargs))
    moved = {id(t): layout(t).to(device).requires_grad_(
        t.is_floating_point() and i not in sample.constant) for i, t in enumerate(leaves)}
    args, kwargs = flambeau.utils._pytree.tree_map(lambda x: moved.get(id(x), x), (args, kwargs))
    return flat_tensors(flambeau, resolve(name)(*args, **kwargs))


NOT_AS_VALUES = (
    "polynomial",           # which of two formulas is taken depends on the greatest degree
    "unravel_index",        # the coordinates share memory in an order that no rule gives
    "as_strided_scatter",   # keeps gaps between the elements
)


class Passing(TorchDispatchMode):
    """Runs each op as it is shown."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def declares_derivatives(function):
    """Are there derivatives of a function, unless its declaration has forgotten them?"""
    declaration = getattr(getattr(function, "op", None), "declaration", None)
    return declaration is None or declaration.differentiable is not False


def of(kind):
    """Marks a test as one for this kind of ops of a family."""
    def mark(test):
        test.kind = kind
        return test
    return mark


@pytest.mark.filterwarnings("ignore", "error::RuntimeWarning")     # those of NumPy
class SampleTests:
    """The tests of one family; each runs once for each op of the kind that it is marked with."""
    family: samples.Samples

    @classmethod
    def oracle(cls):
        return oracle_of(samples.family_name(inspect.getfile(cls)))

    @classmethod
    def recorded(cls, name):
        """What PyTorch gave for the calls of an op, call by call."""
        if name in cls.family.own:
            return [{"gradients": True}] * len(cls.family.calls(name))
        return cls.oracle().index[name]["calls"]

    @classmethod
    def names(cls, kind):
        if kind == "pointwise":
            return [n for n in cls.family if n in cls.family.pointwise and n not in cls.family.own]
        if kind == "differentiable":
            return [n for n in cls.family if n in {*cls.oracle().index, *cls.family.own}
                    and any(e.get("gradients") for e in cls.recorded(n))]
        if kind == "recorded":
            return [n for n in cls.family if n not in cls.family.own]
        if kind == "own":
            return [n for n in cls.family if n in cls.family.own]
        return list(cls.family)

    def pytest_generate_tests(self, metafunc):
        metafunc.parametrize("name", self.names(metafunc.function.kind))

    def smooth_calls(self, name):
        return [s for s, e in zip(self.family.calls(name), self.recorded(name))
                if s.smooth and "error" not in e]

    @of("recorded")
    def test_values_and_gradients(self, name):
        """What PyTorch gave: values, types, shapes, gradients (also at corners), and errors."""
        expected = self.oracle().index.get(name)
        assert expected is not None, "run tests/data/record_ops.py"
        entries = expected["calls"]
        calls = self.family.calls(name)
        assert len(entries) == len(calls), "run tests/data/record_ops.py"
        for i, (entry, sample) in enumerate(zip(entries, calls)):
            what = f"{name}, call {i}"
            if "error" in entry:
                # an error of PyTorch's may be a gap that is filled here
                continue
            results, inputs = call_of(name, sample)
            assert len(results) == len(entry["values"]), what
            for result, wanted in zip(results, entry["values"]):
                compare(result, self.oracle().array(wanted), what, sample.off)
            results = [r for r in results if r.requires_grad]
            if entry.get("gradients") and results:
                found = gradients(results, inputs)
                for j, (g, wanted) in enumerate(zip(found, entry["gradients"])):
                    if wanted is None or g is None:
                        nothing = g if wanted is None else None
                        if wanted is not None:
                            zeros = self.oracle().array(wanted)[1]
                            assert not np.any(zeros), f"{what}, gradient {j}"
                        assert nothing is None or not nothing._array.any(), f"{what}, gradient {j}"
                    else:
                        compare(g, self.oracle().array(wanted), f"{what}, gradient {j}",
                                10 * sample.off)

    @of("pointwise")
    def test_result_types(self, name):
        """The type of the result for each type of argument; where PyTorch refuses, so does this."""
        wanted = self.oracle().index[name].get("dtypes")
        found = samples.dtype_row(flambeau, name, self.family.pointwise[name])
        errors = {"RuntimeError", "NotImplementedError", "TypeError"}
        for dtype, ours, theirs in zip(samples.DTYPES, found, wanted):
            same = ours == theirs or (ours in errors and theirs in errors)
            assert same or theirs in errors, f"{name} of {dtype}: {ours}, expected {theirs}"

    @of("differentiable")
    def test_derivatives(self, name):
        """Reverse mode against differences, forward against reverse, and second derivatives."""
        for i, sample in enumerate(self.smooth_calls(name)):
            problem, what = Problem(name, sample), f"{name}, call {i}"
            if not problem.point or not all(p.dtype.itemsize >= 8 for p in problem.point):
                continue
            gradient = problem.gradient(*problem.point)
            if gradient is None:
                continue
            base = problem.value(*problem.point)
            if base.dtype.itemsize < 8 or not base.isfinite():
                continue
            slope = inner(gradient, problem.direction)
            ahead, behind = (float(problem.value(*problem.shifted(s * EPS))) for s in (1, -1))
            close(slope, (ahead - behind) / (2 * EPS), f"{what}: reverse mode", sample.tolerance)
            tangents = func.jvp(problem.results, tuple(problem.point), tuple(problem.direction))[1]
            results = problem.results(*problem.point)
            close(inner(tangents, seeds_for(results)), slope, f"{what}: forward mode",
                  sample.tolerance)
            second_order(problem, what, sample.tolerance)

    @of("own")
    def test_a_derivative_is_declared(self, name):
        """What no recorded answer shows: floating results that depend on floating arguments have
        a derivative, or the declaration says that they have none."""
        for i, sample in enumerate(self.family.calls(name)):
            results, inputs = call_of(name, sample)
            floating = [r for r in results if r.is_floating_point() or r.is_complex()]
            assert not inputs or not floating or any(r.requires_grad for r in floating) \
                or not declares_derivatives(resolve(name)), (
                    f"{name}, call {i}: the results do not require grad; declare a derivative, or "
                    "differentiable=False")

    @of("all")
    def test_batching(self, name, no_loops):
        """vmap against a loop: over all floating arguments, the first alone, and of gradients."""
        for i, sample in enumerate(self.smooth_calls(name)):
            problem, what = Problem(name, sample), f"{name}, call {i}: vmap"
            if not problem.point or name in self.family.unbatched:
                continue
            slices = [problem.point, problem.shifted(1e-3)]
            stacked = [flambeau.stack(list(pair), -1) for pair in zip(*slices)]
            looped = [problem.results(*s) for s in slices]
            if not looped[0]:
                continue
            wanted = [flambeau.stack(list(r)) for r in zip(*looped)]
            same(func.vmap(problem.results, in_dims=-1)(*stacked), wanted, what)
            if len(slices[0]) > 1:
                rest = slices[0][1:]
                looped = [problem.results(s[0], *rest) for s in slices]
                found = func.vmap(lambda x, p=problem, r=rest: p.results(x, *r),
                                  in_dims=-1)(stacked[0])
                wanted = [flambeau.stack(list(r)) for r in zip(*looped)]
                same(found, wanted, f"{what}, first alone")
            if name in self.names("differentiable") \
                    and problem.gradient(*problem.point) is not None:
                looped = [problem.gradient(*s) for s in slices]
                grad = func.grad(problem.value, tuple(range(len(stacked))))
                found = func.vmap(grad, in_dims=-1)(*stacked)
                same(found, [flambeau.stack(list(g)) for g in zip(*looped)], f"{what} of gradients")

    @of("all")
    def test_layouts_in_place_and_out(self, name):
        """Arguments that are not contiguous; the in-place form; `out=`."""
        function = resolve(name)
        for i, sample in enumerate(self.smooth_calls(name)):
            what, leaves = f"{name}, call {i}", []
            args, kwargs = (as_tensors(flambeau, x, leaves) for x in (sample.args, sample.kwargs))
            wanted = flat_tensors(flambeau, function(*args, **kwargs))
            if name.endswith("_") and not name.endswith("__"):
                continue                        # the call has changed its argument
            if name not in self.family.contiguous:
                strided = [scattered(x) for x in args]
                found = flat_tensors(flambeau, function(*strided, **kwargs))
                same(found, wanted, f"{what}, strided")
            inplace = getattr(flambeau.Tensor, name.split(".")[-1] + "_", None)
            if inplace is not None and len(wanted) == 1 and isinstance(args[0], flambeau.Tensor) \
                    and name in flambeau.core.op.public["torch"] \
                    and wanted[0].dtype is args[0].dtype and wanted[0].shape == args[0].shape:
                target = args[0].clone()
                assert inplace(target, *args[1:], **kwargs) is target
                same([target], wanted, f"{what}, in place")
            outs = tuple(flambeau.empty(0, dtype=w.dtype) for w in wanted)
            try:
                if function(*args, **kwargs, out=outs[0] if len(outs) == 1 else outs) \
                        is NotImplemented:
                    continue                        # a method of an operator
            except TypeError as error:
                # of other signatures
                said = ("out", "positional", "element 0", "must be Tensor", "no keyword arguments")
                assert any(words in str(error) for words in said), error
            except RuntimeError as error:       # of another form of the result
                assert "does not support the out kwarg" in str(error)
            else:
                same(outs, wanted, f"{what}, out=")
                rows = out_in_rows(function, args)
                for out, value in zip(outs, wanted if rows is not None else ()):
                    if is_dense(value._array) and value.dim():
                        seen = [value.contiguous()] if rows else [value]
                        assert geometry([out]) == geometry([t.detach() for t in seen]), what

    @of("all")
    def test_counts_of_writes(self, name):
        """An op writes to none of its arguments; a view counts writes with what it looks at; the
        in-place form counts one."""
        function = resolve(name)
        if name.endswith("_"):
            return
        for i, sample in enumerate(self.smooth_calls(name)):
            what, leaves = f"{name}, call {i}", []
            args, kwargs = (as_tensors(flambeau, x, leaves) for x in (sample.args, sample.kwargs))
            before = [t._version for t in leaves]
            results = flat_tensors(flambeau, function(*args, **kwargs))
            assert [t._version for t in leaves] == before, what
            for r in results:
                if r._is_view() and any(r._base is t for t in leaves):
                    assert r._version == r._base._version, what
            inplace = getattr(flambeau.Tensor, name.rpartition(".")[2] + "_", None)
            if inplace is None or len(results) != 1 or name == "detach" \
                    or name not in flambeau.core.op.public["torch"] \
                    or not isinstance(args[0], flambeau.Tensor) \
                    or results[0].dtype is not args[0].dtype or results[0].shape != args[0].shape:
                continue                        # a view cannot be detached in place
            base = args[0].detach().clone()
            target = base.view_as(base)
            inplace(target, *args[1:], **kwargs)
            assert target._version == base._version == 1, what

    @of("all")
    def test_geometry_on_meta(self, name):
        """Tensors without values give results of the shape, type and layout of those with."""
        for i, sample in enumerate(self.smooth_calls(name)):
            for layout in (lambda t: t, scattered):
                try:
                    wanted = on_device("cpu", name, sample, layout)
                except RuntimeError:            # a view that this layout has not
                    continue
                try:
                    found = on_device("meta", name, sample, layout)
                except (NotImplementedError, RuntimeError) as error:
                    assert "meta" in str(error).lower(), error
                    continue
                if not any(part in name for part in NOT_AS_VALUES):
                    assert geometry(found) == geometry(wanted), f"{name}, call {i}"

    @of("differentiable")
    def test_saved_values_are_unpacked_once(self, name):
        """Whatever a node saves, hooks hand it out once a pass, as checkpointing needs."""
        for i, sample in enumerate(self.smooth_calls(name)):
            unpacked = []
            with flambeau.autograd.graph.saved_tensors_hooks(
                    lambda x: [x], lambda kept, seen=unpacked: seen.append(kept) or kept[0]):
                results, inputs = call_of(name, sample)
                results = [r for r in results if r.requires_grad]
            if results:
                packed = gradients(results, inputs)
                assert len({id(kept) for kept in unpacked}) == len(unpacked), f"{name}, call {i}"
                results, inputs = call_of(name, sample)
                plain = gradients([r for r in results if r.requires_grad], inputs)
                same([g for g in packed if g is not None], [g for g in plain if g is not None],
                     f"{name}, call {i}: packed")

    @of("all")
    def test_a_mode_that_passes_on_changes_nothing(self, name):
        """What ops are shown as to modes computes the same, and has the same gradients."""
        if name in self.family.untested:
            return
        entries = self.recorded(name)
        for i, (entry, sample) in enumerate(zip(entries, self.family.calls(name))):
            if "error" in entry:
                continue
            found = []
            for mode in (contextlib.nullcontext(), Passing()):
                with mode:
                    results, inputs = call_of(name, sample)
                    tracked = [r for r in results if r.requires_grad and entry.get("gradients")]
                    found.append((results, gradients(tracked, inputs) if tracked else []))
            for part, (plain, shown) in zip(("values", "gradients"), zip(*found)):
                what = f"{name}, call {i}: {part}"
                assert [g is None for g in shown] == [g is None for g in plain], what
                same([g for g in shown if g is not None], [g for g in plain if g is not None], what)
