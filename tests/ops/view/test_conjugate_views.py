"""Views that conjugate or negate: they share memory, histories and files with what they look at."""
import copy
import io
import pickle

import numpy as np
import pytest
from sample_tests import SampleTests
from samples import Samples, call

import flambeau
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.autograd import forward_ad as fwd
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.testing import assert_close
from flambeau.utils._python_dispatch import TorchDispatchMode

VALUES = np.array([[1 + 2j, 3 - 1j], [0.5j, 2 - 4j]])


@pytest.fixture
def x():
    return flambeau.tensor(VALUES)


def shown(tensor):
    return np.array(tensor.tolist())


def flags(tensor):
    return tensor.is_conj(), tensor.is_neg(), tensor._is_view()


def test_a_conjugate_is_a_view(x):
    y = x.conj()
    assert flags(y) == (True, False, True) and y._base is x
    assert y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    assert (shown(y) == VALUES.conj()).all() and repr(y) == repr(y.resolve_conj())
    assert flags(y.conj()) == (False, False, True) and y.conj().data_ptr() == x.data_ptr()
    assert flags(x.mH) == (True, False, True) and (shown(x.mH) == VALUES.conj().T).all()
    assert (shown(x.H) == VALUES.conj().T).all() and (shown(x.adjoint()) == VALUES.conj().T).all()
    assert flags(y.imag) == (False, True, True) and (shown(y.imag) == -VALUES.imag).all()
    assert flags(y.real) == (False, False, True) and (shown(y.real) == VALUES.real).all()
    assert x.real.conj() is not None and x.real.conj().data_ptr() == x.data_ptr()


@pytest.mark.parametrize("look", [
    lambda t: t[0], lambda t: t[:, None], lambda t: t.T, lambda t: t.mT, lambda t: t.view(4),
    lambda t: t.reshape(4), lambda t: t.flatten(), lambda t: t.unbind()[1], lambda t: t.diagonal(),
    lambda t: t.split(1)[1], lambda t: t.chunk(2)[0], lambda t: t.narrow(0, 1, 1),
    lambda t: t.expand(3, 2, 2), lambda t: t.unfold(0, 1, 1), lambda t: t.movedim(0, 1),
    lambda t: t.as_strided((2,), (1,), 1), lambda t: t.select(1, 0), lambda t: t.squeeze(),
    lambda t: t.unsqueeze(1), lambda t: t.swapaxes(0, 1), lambda t: flambeau.atleast_3d(t),
    lambda t: t.view_as(t), lambda t: flambeau.broadcast_tensors(t, t)[0], lambda t: t[..., 1:]])


def test_views_of_a_view_share_its_memory(x, look):
    y = look(x.conj())
    assert flags(y) == (True, False, True) and y._base is x
    assert (shown(y) == shown(look(x)).conj()).all()
    x.mul_(2j)
    assert (shown(y) == shown(look(x)).conj()).all()
    assert not (y + 0).is_conj()


@pytest.mark.parametrize("copied", [
    lambda t: t.clone(), lambda t: t + 0, lambda t: t[[0, 1]], lambda t: t.T.contiguous(),
    lambda t: t.T.reshape(4), lambda t: t.resolve_conj(), lambda t: t.repeat(1, 2),
    lambda t: flambeau.stack([t, t]), lambda t: t.imag.clone(), lambda t: t.imag.contiguous(),
    lambda t: t.roll(1), lambda t: t.matmul(t), lambda t: copy.deepcopy(t), lambda t: t.tril()])


def test_results_of_other_ops_are_plain(x, copied):
    y = copied(x.conj())
    assert flags(y) == (False, False, False)
    assert (shown(y) == shown(copied(flambeau.tensor(VALUES.conj())))).all()


WRITES = [
    lambda t: t.mul_(2j), lambda t: t.fill_(1 + 1j), lambda t: t.zero_(), lambda t: t.neg_(),
    lambda t: t.copy_(flambeau.tensor(VALUES + 1j)), lambda t: t.add_(t), lambda t: t.pow_(2),
    lambda t: t.__setitem__(0, 5j), lambda t: t.__setitem__((0, 1), 1j), lambda t: t.sin_(),
    lambda t: t.__setitem__((flambeau.tensor([0, 1]), 0), 3j), lambda t: t.conj_physical_(),
    lambda t: t.imag.mul_(3), lambda t: t.imag.__setitem__(0, 4), lambda t: t.real.zero_(),
    lambda t: setattr(t, "imag", flambeau.ones(2, 2)), lambda t: setattr(t, "real", 2.0),
    lambda t: t.masked_fill_(flambeau.tensor([True, False]), 3j), lambda t: t.tril_(),
    lambda t: t.index_fill_(0, flambeau.tensor([0]), 3j), lambda t: t.view(-1)[1:3].mul_(1j),
    lambda t: t.mH.add_(1j), lambda t: t.diagonal().fill_(9j),
    lambda t: t.index_put_((flambeau.tensor([1]),), flambeau.tensor(4j, dtype=t.dtype)),
    lambda t: t.scatter_(0, flambeau.zeros(1, 2, dtype=flambeau.int64), 7j)]


@pytest.mark.parametrize("write", WRITES)
def test_writes_show_in_both(write):
    a = flambeau.tensor(VALUES.conj())
    write(a)
    x = flambeau.tensor(VALUES)
    y = x.conj()
    write(y)
    np.testing.assert_allclose(shown(y), shown(a), rtol=1e-12)
    np.testing.assert_allclose(shown(x), shown(a).conj(), rtol=1e-12)
    assert y.is_conj() and x._version == y._version == 1


@pytest.mark.parametrize("write", WRITES)
def test_gradients_through_writes(write):
    """A write to the view, and what it does to both, has the derivatives of writes to copies."""
    def run(aliased):
        def f(x):
            base = x * 1
            y = base.conj() if aliased else base.conj_physical()
            write(y)
            base = base if aliased else y.conj_physical()
            return base * (1 + 2j) + y * flambeau.tensor([1 - 3j, 0.5 - 1j])
        x = flambeau.tensor(VALUES, requires_grad=True)
        out = f(x)
        return out, *flambeau.autograd.grad(out.real.sum() + 2 * out.imag.sum(), x,
                                            materialize_grads=True)
    for found, expected in zip(run(True), run(False)):
        np.testing.assert_allclose(shown(found), shown(expected), rtol=1e-12)


def test_derivatives():
    x = flambeau.tensor(VALUES, requires_grad=True)
    for f in (lambda x: x.conj() * x, lambda x: x.mH @ x, lambda x: x.conj().imag * x,
              lambda x: x.conj()[0].exp(), lambda x: flambeau._neg_view(x).conj() ** 2,
              lambda x: (x * 1).conj().real.sin()):
        assert gradcheck(f, (x,), check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(f, (x,))
    y = x.conj()
    assert y.grad_fn.name() == "ConjBackward0"
    assert y.imag.grad_fn.name() == "SelectBackward0"
    assert y.imag.grad_fn.next_functions[0][0].name() == "NegViewBackward0"
    saved = (x * 1).conj()
    out = saved * saved
    saved.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().abs().backward()


def test_a_view_as_a_leaf():
    y = flambeau.tensor(VALUES).conj().requires_grad_()
    assert y.is_leaf
    (y[0] * 2).sum().abs().backward()
    assert y.grad.shape == (2, 2) and (shown(y.grad)[1] == 0).all()
    detached = flambeau.tensor(VALUES).conj().detach()
    assert flags(detached) == (True, False, False)
    (detached.requires_grad_() * 2).real.sum().backward()
    assert (shown(detached.grad) == 2).all()


def test_functions_that_take_levels(x):
    y = x.conj()
    rows = flambeau.vmap(lambda row: row * 2)(y)
    np.testing.assert_allclose(shown(rows), 2 * VALUES.conj())
    assert (shown(flambeau.vmap(lambda row: row.conj())(x)) == VALUES.conj()).all()
    value, tangent = flambeau.func.jvp(lambda t: t.conj() * t, (y,), (y,))
    np.testing.assert_allclose(shown(value), VALUES * VALUES.conj())
    np.testing.assert_allclose(shown(tangent), 2 * VALUES * VALUES.conj())


LOOKS = {
    "conj": lambda t: t.conj(), "row": lambda t: t.conj()[0], "slice": lambda t: t[1:].conj(),
    "adjoint": lambda t: t.mH, "imaginary part": lambda t: t.conj().imag,
    "negative": lambda t: flambeau._neg_view(t), "both": lambda t: flambeau._neg_view(t.conj())}
LEVEL_WRITES = {
    "mul": lambda v: v.mul_(2), "add": lambda v: v.add_(1),
    "zero": lambda v: v.zero_(), "fill": lambda v: v.fill_(2), "sin": lambda v: v.sin_(),
    "copy": lambda v: v.copy_(v * 3), "item": lambda v: v.__setitem__(0, v[-1] * 2),
    "masked": lambda v: v.masked_fill_(v.abs() > 3.7, 5), "flip": lambda v: v.copy_(v.flip(0)),
    "index": lambda v: v.index_fill_(0, flambeau.tensor([0]), 3)}


def written(look, write):
    """A program that writes to a view, and gives what is seen by both."""
    def f(x):
        base = x * 1.5
        view = LOOKS[look](base)
        LEVEL_WRITES[write](view)
        return base, view * 2, LOOKS[look](base)
    return f


@pytest.mark.parametrize("write", LEVEL_WRITES)
@pytest.mark.parametrize("look", LOOKS)
def test_writes_in_forward_mode(look, write, x):
    """Tangents are written to with the values, wherever they are seen; the derivative of an
    elementwise write is that of finite differences."""
    f = written(look, write)
    v = flambeau.tensor([[0.3 - 1j, 2 + 1j], [1 + 0.5j, -1 + 2j]], dtype=x.dtype)
    values, tangents = flambeau.func.jvp(f, (x,), (v,))
    ahead, behind = f(x + 1e-6 * v), f(x - 1e-6 * v)
    for value, tangent, plain, a, b in zip(values, tangents, f(x), ahead, behind):
        np.testing.assert_allclose(shown(value), shown(plain), rtol=1e-12)
        np.testing.assert_allclose(shown(tangent), (shown(a) - shown(b)) / 2e-6, atol=1e-7)
        assert flags(tangent)[:2] == flags(value)[:2]


@pytest.mark.parametrize("write", LEVEL_WRITES)
@pytest.mark.parametrize("look", LOOKS)
def test_writes_in_vmap(look, write, x):
    f = written(look, write)
    batch = flambeau.stack([x, x.flip(0), x * 1j])
    for found, *each in zip(flambeau.vmap(f)(batch), *map(f, batch)):
        np.testing.assert_allclose(shown(found), [shown(one) for one in each], rtol=1e-12)


def test_flags_in_levels(x):
    seen = []

    def f(t):
        y = t.conj()
        seen.append((y.is_conj(), y.resolve_conj().is_conj(), (y * 1).is_conj(), y[0].is_conj(),
                     y.conj().is_conj()))
        return y
    expected = (True, False, False, True, False)
    assert flambeau.vmap(f)(x[None]).is_conj() and seen.pop() == expected
    assert [t.is_conj() for t in flambeau.func.jvp(f, (x,), (x,))] == [True, True]
    assert seen.pop() == expected
    assert flambeau.func.vjp(f, x)[0].is_conj() and seen.pop() == expected
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conj"):
        flambeau.vmap(lambda t: flambeau.view_as_real(t.conj()))(x)


def test_a_tangent_that_comes_after_the_view(x):
    with fwd.dual_level():
        base = x.clone()
        view, part = base.conj(), base.imag
        base.mul_(fwd.make_dual(x.clone(), x * 1j))
        np.testing.assert_allclose(shown(fwd.unpack_dual(view * 2).tangent),
                                   2 * (VALUES * VALUES * 1j).conj())
        np.testing.assert_allclose(shown(fwd.unpack_dual(part).tangent), (VALUES ** 2).real)


def test_a_write_that_changes_nothing_keeps_the_history():
    """The conjugate of real numbers is themselves."""
    x = flambeau.tensor(VALUES, requires_grad=True)
    base = x * 1
    part = base.imag.conj_physical_()
    (base.real.sum() + part.sum()).backward()
    assert (shown(x.grad) == 1 + 1j).all()


def test_results_may_go_to_views(x):
    y = x.conj()
    flambeau.mul(x.clone(), 2, out=y)
    assert (shown(y) == 2 * VALUES).all() and (shown(x) == 2 * VALUES.conj()).all()
    x.copy_(x.conj())
    assert (shown(x) == 2 * VALUES).all()


def test_negative_views(x):
    for t in (x, x.real):
        n = flambeau._neg_view(t)
        assert flags(n) == (False, True, True) and (shown(n) == -shown(t)).all()
        n.add_(1)
        assert (shown(t) == -shown(n)).all()
        assert flags(n.resolve_neg()) == (False, False, False)
        assert (n.resolve_neg() == n + 0).all()
    assert flambeau._neg_view(x).conj().is_conj() and flambeau._neg_view(x).real.is_neg()
    assert not flambeau._neg_view(x.conj()).imag.is_neg()


def test_copies_and_files(x):
    for y in (x.conj(), x.conj().imag):
        file = io.BytesIO()
        flambeau.save(y, file)
        file.seek(0)
        for again in (flambeau.load(file), pickle.loads(pickle.dumps(y))):
            assert flags(again)[:2] == flags(y)[:2] and (shown(again) == shown(y)).all()


def test_what_is_refused(x):
    y = x.conj()
    with pytest.raises(RuntimeError, match="view_as_real doesn't work on unresolved conjugated"):
        flambeau.view_as_real(y)
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        y.view(flambeau.float64)
    with pytest.raises(RuntimeError, match="not supported for tensors with negative bit set"):
        y.imag.view(flambeau.int64)
    with pytest.raises(RuntimeError, match="Tensor that has conjugate bit set"):
        y.numpy()
    with pytest.raises(RuntimeError, match="Tensor that has negative bit set"):
        np.asarray(y.imag)
    with pytest.raises(BufferError, match="with the conjugate bit set"):
        y.__dlpack__()
    assert (y.numpy(force=True) == VALUES.conj()).all()
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        y.detach_()


def test_metadata_in_place(x):
    y = x.conj()
    y.t_()
    assert y.is_conj() and (shown(y) == VALUES.conj().T).all() and y.data_ptr() == x.data_ptr()
    y.unsqueeze_(0)
    assert y.shape == (1, 2, 2) and y.is_conj()
    y.squeeze_(0).fill_(1j)
    assert (shown(x) == -1j).all()


def test_on_meta():
    y = flambeau.ones(2, 3, dtype=flambeau.complex64, device="meta").conj()
    assert y.is_conj() and y.mH.shape == (3, 2) and not y.conj().is_conj()


def test_random_fills(x):
    flambeau.manual_seed(0)
    a = flambeau.empty(2, 2, dtype=x.dtype).normal_()
    flambeau.manual_seed(0)
    x.conj().normal_()
    assert (shown(x) == shown(a).conj()).all()


def test_data_and_memory_of_views(x):
    """Who takes over what a view shows becomes a view, or gets the elements."""
    y = x.conj()
    y.data = flambeau.tensor([1 + 1j])
    assert not y.is_conj() and y.tolist() == [1 + 1j]
    z = flambeau.tensor([1 + 2j])
    z.data = z.conj()
    assert z.is_conj() and z.mul_(2).tolist() == [2 - 4j]
    p = flambeau.nn.Parameter(flambeau.tensor([1 + 2j]))
    p.data = p.data.conj()
    p.grad = flambeau.ones(1, dtype=p.dtype)
    flambeau.optim.SGD([p], lr=1.0).step()
    assert p.tolist() == [-2j] and type(p) is flambeau.nn.Parameter
    flambeau.nn.utils.vector_to_parameters(flambeau.tensor([3 + 1j]).conj(), [p])
    assert p.data.mul_(2).tolist() == [6 - 2j]
    other = flambeau.zeros(1, dtype=x.dtype).conj()
    assert other.set_(flambeau.tensor([1 + 1j], dtype=x.dtype).conj()).tolist() == [1 - 1j]
    assert flambeau.Tensor(flambeau.tensor([2j]).conj().imag).mul_(2).tolist() == [-4]


def test_parameters_that_conjugate():
    m = flambeau.nn.Linear(1, 1, bias=False, dtype=flambeau.complex64)
    m.weight = flambeau.nn.Parameter(flambeau.tensor([[1j]]).conj())
    for again in (copy.deepcopy(m.weight), pickle.loads(pickle.dumps(m.weight))):
        assert isinstance(again, flambeau.nn.Parameter) and again.tolist() == [[-1j]]
    assert m.to(flambeau.complex128).weight.tolist() == [[-1j]]


def test_inference_mode(x):
    with flambeau.inference_mode():
        x = x.clone()
        assert x.conj().mul_(2).is_conj() and (shown(x) == 2 * VALUES).all()


def test_writes_that_are_refused():
    once = flambeau.tensor([1 + 1j]).expand(3).conj()
    for write in (lambda: once.mul_(2), lambda: once.imag.add_(2)):
        with pytest.raises(RuntimeError, match="more than one element"):
            write()
    with pytest.raises(RuntimeError, match="cannot be converted"):
        flambeau.tensor([1 + 1j]).conj().imag[0] = 1j
    assert f"{flambeau.tensor(1 + 2j).conj():.1f}" == "1.0-2.0j"


# ---- samples ------------------------------------------------------------------------------------

family = Samples()

for _name, _args in {
    "conj": [()],
    "resolve_conj": [()],
    "resolve_neg": [()],
}.items():
    @family(_name)
    def _(r, given=_args):
        return [call(r.real(2, 3), *args) for args in given]


class TestSamples(SampleTests):
    family = family


class _Shown(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def test_a_dispatch_mode_sees_views_that_stay_views():
    x = flambeau.tensor([1 + 2j, 3 - 1j])
    with _Shown() as shown:
        conjugated, negated = x.conj(), flambeau._neg_view(x)
        conjugated.mul_(2j)
        negated[0] = 5.0
    assert shown.names[:2] == ["aten._conj.default", "aten._neg_view.default"]
    assert conjugated.is_conj() and negated.is_neg() and conjugated._base is x
    assert x.tolist() == [-5, (3 - 1j) * -2j]


def test_gradients_of_views_that_a_dispatch_mode_sees():
    x = flambeau.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    with _Shown():
        y = x.conj()
        assert type(y.grad_fn).__name__ == "ConjBackward0"
        (y * y).real.sum().backward()
    assert x.grad.tolist() == [2 - 4j, 6 + 2j]


PROGRAMS = {
    "product": lambda x: x @ x.conj(),
    "adjoint": lambda x: x.mH + x,
    "parts": lambda x: flambeau.complex(x.conj().imag, x.conj().real),
    "einsum": lambda x: flambeau.einsum("ij,jk->ik", x, x.mH),
    "cat": lambda x: flambeau.cat([x[:1].conj(), x[1:]]),
    "index": lambda x: x.conj()[flambeau.tensor([1, 0])] * x.conj()[:, 0],
    "solve": lambda x: flambeau.linalg.solve(x, x.conj()),
    "negative": lambda x: flambeau._neg_view(x).exp() + flambeau._neg_view(x.conj()).mT,
    "reshape": lambda x: x.conj().reshape(4).contiguous().view(2, 2),
    "detach": lambda x: x + x.conj().detach(),
    "like": lambda x: flambeau.ones_like(x.conj()) + x,
    "cast": lambda x: x.conj().to(flambeau.complex64).sum(0),
    "split": lambda x: sum(part.conj() for part in x.conj().split(1)),
}


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_traced_programs_know_views_as_what_they_were_made_of(name, mode):
    program = PROGRAMS[name]
    x, other = flambeau.tensor(VALUES), flambeau.tensor(VALUES[::-1] * (2 - 1j) + 1)
    graph = make_fx(program, tracing_mode=mode)(x)
    assert_close(graph(other), program(other))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_dispatch_mode_changes_no_result(name):
    x = flambeau.tensor(VALUES)
    with _Shown():
        found = PROGRAMS[name](x)
    assert_close(found, PROGRAMS[name](x))


def _bits(tensor):
    return tensor.is_conj(), tensor.is_neg()


BITS = [lambda x: x, lambda x: x.imag, lambda x: x.real, lambda x: x.mT, lambda x: x[0],
        lambda x: x.conj(), lambda x: x.mH, lambda x: x * 2, lambda x: x.clone(),
        lambda x: x.detach(), lambda x: x.reshape(4), lambda x: x.resolve_conj(),
        lambda x: x.imag.T]


@pytest.mark.parametrize("program", BITS)
def test_what_has_no_values_has_the_bits(program):
    x = flambeau.tensor(VALUES)
    views = x, x.conj(), flambeau._neg_view(x)
    wanted = [_bits(program(view)) for view in views]
    mode = FakeTensorMode()
    fakes = [mode.from_tensor(view) for view in views]
    with mode:
        assert [_bits(program(fake)) for fake in fakes] == wanted
        assert [_bits(program(f)) for f in (fakes[0].conj(), flambeau._neg_view(fakes[0]))] \
            == wanted[1:]
    on_meta = x.to("meta")
    assert [_bits(program(m)) for m in (on_meta, on_meta.conj(), flambeau._neg_view(on_meta))] \
        == wanted
