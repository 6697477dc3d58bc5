"""Hooks through which saved tensors pass."""
import pytest

import flambeau
from flambeau.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks


def leaf(*values):
    return flambeau.tensor(values, requires_grad=True)


@pytest.mark.parametrize("x, dtype", [(3.0, "float32"), (2.0, "float64")])
def test_a_round_trip_through_lists(x, dtype):
    a = flambeau.tensor([x, 2 * x], dtype=getattr(flambeau, dtype), requires_grad=True)
    with saved_tensors_hooks(lambda t: (t.tolist(), t.dtype),
                             lambda packed: flambeau.tensor(packed[0], dtype=packed[1])):
        y = (a * a).sum()
    y.backward()
    assert a.grad.tolist() == [2 * x, 4 * x] and a.grad.dtype == a.dtype


def test_hooks_nest_and_the_innermost_counts():
    seen = []
    with saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t), \
            saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
        leaf(1.0).exp()
    assert seen == ["inner"]


def test_disabled_hooks():
    with disable_saved_tensors_hooks("not now"):
        with pytest.raises(RuntimeError, match="not now"), \
                saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
        with disable_saved_tensors_hooks("nor then"), pytest.raises(
                RuntimeError, match="nor then"), saved_tensors_hooks(lambda t: t, lambda t: t):
            pass
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        leaf(1.0).exp().sum().backward()


def test_what_hooks_unpack_must_be_a_tensor():
    with saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = leaf(1.0).exp()
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Ten"):
        y.sum().backward()


def test_save_on_cpu():
    x = leaf(3.0)
    with flambeau.autograd.graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 6.0


def test_pack_hooks_see_results_with_their_history():
    x, seen = flambeau.ones(2, requires_grad=True), []

    def pack(tensor):
        seen.append((tensor.requires_grad, tensor.grad_fn))
        return tensor.detach()

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        y = x.exp()
        values, _ = x.max(0)
    assert seen == [(True, y.grad_fn), (False, None)]
    (y.sum() + values).backward()
    assert x.grad.equal(y.detach() + flambeau.tensor([1.0, 0.0]))


def test_saved_tensors_pass_through_hooks():
    packed = []

    def pack(t):
        packed.append(t.clone())
        return len(packed) - 1
    x = leaf(3.0)
    with saved_tensors_hooks(pack, lambda i: packed[i] * 2):
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 12.0 and len(packed) == 2
    with disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), \
            saved_tensors_hooks(pack, pack):
        pass


def test_pack_hooks_see_each_saved_tensor_once_and_their_errors_come_out():
    a, seen = flambeau.rand(3, 3, requires_grad=True), []
    with saved_tensors_hooks(lambda t: seen.append(tuple(t.shape)) or t, lambda t: t):
        y = flambeau.var_mean((a @ a).tanh(), 0)  # a twice, the result of tanh, what var keeps
        y[0].sum().backward()
        before = len(seen)
        with flambeau.no_grad():
            a.sigmoid()
    assert seen[:3] == [(3, 3)] * 3 and len(seen) == before
    expected, = flambeau.autograd.grad((a @ a).tanh().var(0).sum(), a)
    assert flambeau.equal(a.grad, expected)

    def refuse(tensor):
        raise ValueError("not kept")
    for call in (lambda: a.exp(), lambda: a @ a, lambda: a.max(0), lambda: a.clone().sin_()):
        with pytest.raises(ValueError, match="not kept"), saved_tensors_hooks(refuse, refuse):
            call()


def test_saved_tensor_hooks_that_a_pass_has_entered_end_with_it():
    packed, x = [], leaf(1.0)

    def enter(grad):
        saved_tensors_hooks(packed.append, lambda t: t).__enter__()

    with saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 10):
        y = x * x
        y.register_hook(enter)
        y.backward(flambeau.ones(1))
        z = x * x                           # packed by the hooks of before the pass
    assert packed == [] and x.grad.item() == flambeau.autograd.grad(z, x)[0].item() == 20.0


def test_hooks_of_one_saved_tensor():
    x = leaf(3.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t * 10)
    y.sum().backward()
    assert x.grad.item() == pytest.approx(200.855, rel=1e-4)


def test_handles_on_lists_of_saved_tensors():
    x, rows = flambeau.ones(2, 3, requires_grad=True), flambeau.tensor([0, 1])
    node = x[:, rows].grad_fn
    whole, index = node._raw_saved_indices
    assert isinstance(index, flambeau.autograd.SavedTensor) and index.data is rows
    index.register_hooks(lambda t: t.tolist(), lambda t: flambeau.tensor(t))
    assert index.data == [0, 1] and node._saved_indices[1].equal(rows)
    with pytest.raises(RuntimeError, match="already been set"):
        index.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        whole.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(AttributeError, match="no attribute '_raw_saved_self_sym_sizes'"):
        node._raw_saved_self_sym_sizes
    result = x.max(0)[0]
    assert result.grad_fn._raw_saved_indices.data.tolist() == [0, 0, 0]
    result.sum().backward()
    with pytest.raises(RuntimeError, match="on a saved tensor after it has been freed"):
        result.grad_fn._raw_saved_indices.register_hooks(lambda t: t, lambda t: t)


def test_pack_hooks_run_with_the_dispatch_modes_that_were_set_aside_for_the_op():
    from flambeau.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = flambeau.ones(2, requires_grad=True)
    with Names() as outer, Names() as inner:
        with flambeau.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            y = x.exp()
        y.neg()
    assert inner.seen == outer.seen == ["exp.default", "detach.default", "neg.default"]
