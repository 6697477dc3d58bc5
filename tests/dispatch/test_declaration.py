"""Ops that are declared by their schemas: what follows from one statement."""
import inspect

import numpy as np
import pytest

import flambeau as torch
from flambeau.core.op import public, table
from flambeau.dispatch.declaration import op
from flambeau.func import jvp, vmap
from flambeau.ops.reduction.minmax import put_along


def _forget(*names):
    """Take an op out of the registry, with its overloads."""
    for name in names:
        del table[name]
    del public["torch"][names[0]]
    delattr(torch.Tensor, names[0])


X = torch.tensor([[1.0, 3.0, 2.0], [4.0, 0.0, 5.0]])


@pytest.fixture
def late_max():
    """An op like `cummax`, with two results and two overloads; taken out again afterwards."""
    def kernel(x, dim, keepdim):
        if dim is None:
            x, dim = x.reshape(-1), 0
        where = x.shape[dim] - 1 - np.argmax(np.flip(x, dim), dim, keepdims=True)
        found = np.take_along_axis(x, where, dim)
        return (found, where) if keepdim else (np.squeeze(found, dim), np.squeeze(where, dim))

    yield op("late_max(Tensor self) -> (Tensor values, Tensor indices)",
             "late_max.dim(Tensor self, int dim, bool keepdim=False) -> "
             "(Tensor values, Tensor indices)",
             kernel=kernel, dims="dim", refuses=("late_max_cpu", "c"),
             d_self=lambda grad, indices, self_shape, dim: put_along(
                 grad if indices.ndim == len(self_shape) else grad.unsqueeze(dim),
                 indices if indices.ndim == len(self_shape) else indices.unsqueeze(dim),
                 self_shape, dim),
             doc="The greatest element, and where it comes last.")
    _forget("late_max", "late_max.dim")


def test_function_and_method(late_max):
    values, indices = late_max(X, 1)
    assert values.tolist() == [3.0, 5.0] and indices.tolist() == [1, 2]
    assert X.late_max().values.item() == 5.0
    assert X.late_max(dim=-1, keepdim=True).indices.tolist() == [[1], [2]]
    assert X.late_max(axis=0).values.tolist() == [4.0, 3.0, 5.0]
    assert late_max(X, torch.tensor(1)).indices.tolist() == [1, 2]      # a tensor for a number
    assert late_max(X, np.int64(1)).indices.tolist() == [1, 2]


def test_derivatives(late_max):
    x = X.clone().requires_grad_()
    values, indices = x.late_max(1)
    assert values.grad_fn.name() == "LateMaxBackward1" and indices.grad_fn is None
    assert values.grad_fn._saved_indices.tolist() == [1, 2]
    values.sum().backward()
    assert x.grad.tolist() == [[0, 1, 0], [0, 0, 1]]
    assert torch.autograd.gradcheck(lambda t: t.late_max(1)[0], (X.double().requires_grad_(),))
    assert jvp(lambda t: t.late_max(1)[0], (X,), (X,))[1].tolist() == [3.0, 5.0]
    assert vmap(lambda row: row.late_max(0)[0])(X).tolist() == [3.0, 5.0]


def test_out(late_max):
    out = torch.empty(2), torch.empty(2, dtype=torch.int64)
    assert late_max(X, 1, out=out)[0] is out[0] and out[1].tolist() == [1, 2]


def test_refusal(late_max):
    with pytest.raises(NotImplementedError, match="\"late_max_cpu\" not implemented for "
                                                  "'ComplexFloat'"):
        X.to(torch.complex64).late_max(0)


@pytest.mark.parametrize("call, said", [
    (lambda f: f("a"), "late_max(): argument 'input' (position 1) must be Tensor, not str"),
    (lambda f: f("a", 1, out=(X, X)), "late_max(): argument 'input' (position 1) must be Tensor, "
                                      "not str"),
    (lambda f: X.late_max(1.0), "late_max(): argument 'dim' (position 1) must be int, not float"),
    (lambda f: f(X, 0, False, 1), "late_max() takes from 2 to 3 positional arguments but 4 were "
                                  "given"),
    (lambda f: f(X, dim=0, other=1), "late_max() got an unexpected keyword argument 'other'"),
    (lambda f: torch.Tensor.late_max(1), "descriptor 'late_max' for 'torch._C.TensorBase' objects "
                                         "doesn't apply to a 'int' object"),
])
def test_wrong_calls(late_max, call, said):
    with pytest.raises(TypeError) as caught:
        call(late_max)
    assert str(caught.value) == said


def test_dimension_out_of_range(late_max):
    with pytest.raises(IndexError, match=r"expected to be in range of \[-2, 1\], but got 2"):
        X.late_max(2)


def test_what_modes_and_types_see(late_max):
    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return function.__name__, len(args), kwargs

    assert late_max(X.as_subclass(Seen), dim=1) == ("late_max", 1, {"dim": 1})
    assert inspect.signature(late_max).parameters["dim"].default is None
    assert table["late_max.dim"].schema.full_name == "late_max.dim"


def test_twin_gives_the_same(late_max):
    twin = late_max.twin
    for args, kwargs in [((X,), {}), ((X, 0), {}), ((X,), {"dim": 1, "keepdim": True})]:
        for ours, expected in zip(late_max(*args, **kwargs), twin(*args, **kwargs)):
            assert torch.equal(ours, expected)


def test_an_op_made_of_others():
    @op("two_sums(Tensor self, Tensor other, *, Scalar alpha=2) -> Tensor")
    def two_sums(self, other, alpha):
        """self + other, times alpha."""
        return (self + other) * alpha

    x = torch.ones(2)
    try:
        assert two_sums(x, x).tolist() == [4, 4] and x.two_sums(other=x, alpha=1).tolist() == [2, 2]
        assert two_sums.__doc__ == "self + other, times alpha."
        assert torch.func.vmap(two_sums)(torch.ones(2, 3), torch.ones(2, 3)).shape == (2, 3)
        with pytest.raises(TypeError, match=r"^two_sums\(\): argument 'other' \(position 2\) "
                                            "must be Tensor, not int$"):
            two_sums(x, 1)
        result = torch.zeros(2)
        assert two_sums(x, x, out=result) is result and result.tolist() == [4, 4]
    finally:
        _forget("two_sums")


def test_canonical_arguments_made_in_python():
    """What is no matter of roles is checked by a function, each call once."""
    def checked(self, times):
        calls.append(times)
        if times < 0:
            raise RuntimeError("times: expected no negative number")
        return self, times * 10

    calls: list = []
    op("tens(Tensor self, int times=1) -> Tensor", kernel=lambda self, times: self * times,
       canonical=checked, kind="linear", d_self=lambda grad, times: grad * times)
    try:
        x = torch.ones(2, requires_grad=True)
        public["torch"]["tens"](x, 3).sum().backward()
        assert x.grad.tolist() == [30, 30] and calls == [3]
        with pytest.raises(RuntimeError, match="expected no negative number"):
            x.tens(-1)
        assert calls == [3, -1]
    finally:
        _forget("tens")


# ---- further overloads, and further ways to call one ---------------------------------------------

def test_joined_overloads_have_kernels_and_nodes_of_their_own():
    x = X.clone().requires_grad_()
    assert x.max().grad_fn.name() == "MaxBackward1" and x.max(1)[0].grad_fn.name() == "MaxBackward0"
    assert torch.max(x, x + 1).grad_fn.name() == "MaximumBackward0"
    assert table["max.other"].composite and table["max.dim"].schema.full_name == "max.dim"
    with pytest.raises(TypeError, match=r"(?s)max\(\) received an invalid combination.*int dim"):
        torch.max(X, "a")


def test_further_ways_to_call_lead_to_one_op():
    assert X.var(False).item() == X.var(correction=0).item() == X.var(None, False).item()
    assert X.var(1, False).tolist() == X.var(dim=1, correction=0).tolist()
    x = X.clone().requires_grad_()
    assert x.var(1, True).grad_fn._saved_correction is True
    assert {x.var().grad_fn.name(), x.var(1).grad_fn.name()} == {"VarBackward0"}


def test_an_empty_list_of_dimensions():
    assert X.any(dim=()).shape == X.shape and X.sum(()).shape == X.amax(()).shape == ()


def test_out_of_another_type():
    with pytest.raises(RuntimeError, match="Expected the dtype for input and out to match"):
        torch.amax(X, 0, out=torch.empty(3, dtype=torch.float64))


def test_a_composite_that_writes_is_a_function_too():
    x = torch.tensor([2.0, 3.0])
    assert torch.square_(x) is x and x.square_().tolist() == [16.0, 81.0]


@pytest.mark.parametrize("error", [ValueError("no"), MemoryError(), RuntimeError("no")])
def test_a_body_that_fails_has_run_once(error):
    runs = []

    @op("fail_after_effects(Tensor self, *, int n=1) -> Tensor")
    def fail_after_effects(self, n):
        runs.append(n)
        raise error

    try:
        with pytest.raises(type(error)) as raised:
            fail_after_effects(X, n=2)
        assert raised.value is error
        with pytest.raises(type(error)):
            X.fail_after_effects()
    finally:
        _forget("fail_after_effects")
    assert runs == [2, 1]


def test_a_body_that_wants_too_much_memory_says_so_in_pytorchs_words():
    @op("want_too_much(Tensor self, int[] size) -> Tensor")
    def want_too_much(self, size):
        return torch.from_numpy(np.empty(size))

    try:
        with pytest.raises(RuntimeError, match="DefaultCPUAllocator: can't allocate memory"):
            want_too_much(X, [1 << 40, 1 << 10])
        with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
            want_too_much(X, [1 << 62, 1 << 30])
    finally:
        _forget("want_too_much")


def test_parameters_may_be_called_input():
    weigh = op("weigh(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", method=False,
               kernel=lambda x, w, b: x * w if b is None else x * w + b,
               vjp=lambda grad, input, weight: (grad * weight, grad * input, grad))
    try:
        w = torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
        assert weigh(X, weight=w).tolist() == (X * w).tolist()
        bias = torch.ones(3, requires_grad=True)
        weigh(X, w, bias).sum().backward()
        assert w.grad.tolist() == X.sum(0).tolist()
        assert bias.grad.tolist() == [2.0, 2.0, 2.0]
        with pytest.raises(TypeError, match=r"'weight' \(position 2\) must be Tensor, not int"):
            weigh(X, 1)
    finally:
        del table["weigh"], public["torch"]["weigh"]


def test_lists_of_numbers_and_of_bools():
    seen = []
    pick = op("pick(Tensor self, bool[2] mask, float[]? scales=None) -> Tensor",
              kernel=lambda x, *rest: seen.append(rest) or x.copy())
    try:
        pick(X, [True, False])
        X.pick((False, True), scales=[1, 2.5])
        with pytest.raises(TypeError, match="must be tuple of bools, not int"):
            pick(X, 1)
    finally:
        _forget("pick")
    assert seen == [([True, False], None), ((False, True), [1, 2.5])]


# ---- writes ----

def test_results_go_into_several_tensors(late_max):
    values, places = torch.empty(2), torch.empty(2, dtype=torch.int64)
    found = torch.late_max(X, 1, out=(values, places))
    assert found.values is values
    assert found.indices is places
    assert (values.tolist(), places.tolist()) == ([3.0, 5.0], [1, 2])
    assert (values._version, places._version) == (1, 1)
    with pytest.raises(RuntimeError, match=r"doesn't match|dtype|cast"):
        torch.late_max(X, 1, out=(values, torch.empty(2, dtype=torch.bool)))


def _leaf(*values):
    return torch.tensor(values, requires_grad=True)


@pytest.mark.parametrize(("write", "slope"), [
    (lambda y: y.mul_(torch.tensor([2.0, 3.0])), [2.0, 3.0]),
    (lambda y: y.exp_(), np.exp([1.0, 2.0]).tolist()),
    (lambda y: y.mul_(y.detach().clone()), [1.0, 2.0]),
    (lambda y: y.pow_(3), [3.0, 12.0]),
    (lambda y: y.cumsum_(0), [2.0, 1.0])])
def test_writes_are_recorded(write, slope):
    x = _leaf(1.0, 2.0)
    y = x.clone()
    before = y.grad_fn
    y.retain_grad()
    assert write(y) is y
    assert y.grad_fn is not before
    assert y._version == 1
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), slope, rtol=1e-6)
    assert y.grad.tolist() == [1.0, 1.0]


def test_what_is_saved_must_not_be_written_to():
    y = _leaf(1.0, 2.0).clone()
    y.mul_(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_second_derivatives_go_through_writes():
    x = _leaf(1.0, 2.0)
    y = x.clone().pow_(3)
    first, = torch.autograd.grad(y.sum(), x, create_graph=True)
    second, = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [6.0, 12.0]


def test_constants_become_part_of_the_graph():
    w, z = _leaf(1.0, 2.0), torch.zeros(2)
    z.add_(w * 3)
    z.add_(1)
    z.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


def test_leaves_and_their_views_are_not_written_to():
    x = _leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
        x[0].add_(1)
    assert x.tolist() == [3.0, 3.0]


def test_views_of_tensors_without_history():
    base = torch.zeros(2, 2)
    base[0].add_(1)
    row = base[1]
    row.mul_(2).add_(3)
    assert base.tolist() == [[1.0, 1.0], [3.0, 3.0]]
    assert base._version == 3
    base.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        row.add_(1)
    w = _leaf(1.0, 2.0)
    other = torch.zeros(2, 2)
    other[0].mul_(w)
    assert other.requires_grad


def test_whole_numbers_for_floats_are_floats():
    """As PyTorch's `double`; a Scalar stays what it is."""
    x = torch.ones(2, 2, requires_grad=True)
    for call, saved, kind in (
            (lambda: torch.pdist(x, p=1), "p", float),
            (lambda: torch.cdist(x, x, p=1), "p", float),
            (lambda: torch.logit(x, eps=0), "eps", float),
            (lambda: torch.dist(x, x, p=1), "p", int)):
        assert type(getattr(call().grad_fn, f"_saved_{saved}")) is kind


def test_a_second_statement_of_a_name_is_refused():
    square = op("own_square(Tensor self) -> Tensor", kernel=lambda x: x * x)
    try:
        with pytest.raises(ValueError, match=r"own_square is declared already, at .*declaration.py:"
                                             r"\d+, and again at .*test_declaration.py:\d+; "):
            op("own_square(Tensor self) -> Tensor", kernel=lambda x: x)
        assert X.own_square().tolist() == square(X).tolist() == (X * X).tolist()
        with pytest.raises(ValueError, match=r"sin is declared already, at .*elementary.py:\d+"):
            op("sin(Tensor self) -> Tensor", kernel=lambda x: x)
    finally:
        _forget("own_square")


def test_a_statement_that_replaces_another():
    op("own_cube(Tensor self) -> Tensor", "own_cube.by(Tensor self, float by) -> Tensor",
       kernel=lambda x, by=1.0: x)
    try:
        first = table["own_cube"]
        cube = op("own_cube(Tensor self) -> Tensor", kernel=lambda x: x ** 3, replaces=True)
        assert table["own_cube"] is not first
        assert X.own_cube().tolist() == cube(X).tolist() == (X ** 3).tolist()
        with pytest.raises(NotImplementedError, match="replacing further overloads"):
            op("own_cube.by(Tensor self, float by) -> Tensor", kernel=lambda x, by: x,
               overload_of=cube, replaces=True)
    finally:
        _forget("own_cube", "own_cube.by")


def test_a_misspelled_type_is_an_error_of_the_statement():
    with pytest.raises(ValueError, match="own_sum: 'Tenser' is no type; did you mean 'Tensor'"):
        op("own_sum(Tensor self) -> Tensor", kernel=None, aliases=("own_sum(Tenser self)",))
    assert "own_sum" not in table
