"""In-place writes and views: gradients, versions, and what is forbidden."""
import re

import numpy as np
import pytest

import flambeau
from flambeau.testing import assert_close


def leaf(*shape):
    return flambeau.rand(*shape, dtype=flambeau.float64).add(0.5).requires_grad_()


VIEWS = {
    "row": lambda x: x[1], "column": lambda x: x[:, 1], "transposed": lambda x: x.t(),
    "block": lambda x: x[1:, ::2], "flat": lambda x: x.view(-1), "diagonal": lambda x: x.diagonal(),
    "twice": lambda x: x.t()[1:].t()[0],
}


@pytest.mark.parametrize("name", VIEWS)
def test_writing_to_a_view_changes_the_gradient_of_its_base(name):
    view, x = VIEWS[name], leaf(4, 4)
    factor = leaf(1)
    y = x * x
    view(y).mul_(factor)
    y.sum().backward()
    mask = flambeau.zeros(4, 4, dtype=flambeau.float64)
    view(mask).fill_(1)
    inside = x.detach() * mask
    outside = x.detach() * (1 - mask)
    assert_close(x.grad, 2 * outside + 2 * inside * factor.detach())
    assert_close(factor.grad, (inside ** 2).sum().reshape(1))


@pytest.mark.parametrize("name", VIEWS)
def test_writing_to_the_base_changes_the_gradient_of_a_view(name):
    view, x = VIEWS[name], leaf(4, 4)
    y = x * 1
    part = view(y)
    y.mul_(3)
    assert part.grad_fn is not None
    (part ** 2).sum().backward()
    mask = flambeau.zeros(4, 4, dtype=flambeau.float64)
    view(mask).fill_(1)
    assert_close(x.grad, 18 * x.detach() * mask)


def test_overwritten_parts_get_no_gradient():
    x, row = leaf(3, 3), leaf(3)
    y = x * 2
    y[1] = row
    y.sum().backward()
    assert x.grad[1].tolist() == [0.0] * 3 and x.grad[0].tolist() == [2.0] * 3
    assert row.grad.tolist() == [1.0] * 3


@pytest.mark.parametrize("write", [
    lambda v: v.fill_(3), lambda v: v.zero_(), lambda v: v.fill_(flambeau.tensor(3.0)),
    lambda v: v.copy_(flambeau.ones(2)), lambda v: v.normal_(), lambda v: v.uniform_()])
def test_constants_cut_the_gradient_of_a_part(write):
    x = leaf(3)
    y = x * 2
    view = y[:2]
    write(view)
    assert y.grad_fn.name() == "torch::autograd::CopySlices" and view.requires_grad
    found, = flambeau.autograd.grad(y.sum() + view.sum(), x, retain_graph=True)
    assert found.tolist() == [0, 0, 2]
    whole = leaf(2)
    written = whole * 2
    write(written)
    assert flambeau.autograd.grad(written.sum(), whole)[0].tolist() == [0, 0]
    plain = flambeau.zeros(3)
    write(plain[:2])
    assert not plain.requires_grad


GEOMETRIES = {
    "transposed rows": lambda t: t.view(4, 6)[1:3].t(),
    "a column of a part": lambda t: t[3:21].view(3, 6)[:, 2],
    "windows": lambda t: t[2:].view(2, 11).unfold(1, 3, 2),
    "diagonal": lambda t: t[4:12].view(4, 2).diagonal(1),
    "expanded": lambda t: t[1:5].expand(2, 4),
    "strides and an offset": lambda t: t[6:18].view(3, 4).as_strided((2, 2), (3, 1), 7)[1],
    "after complex": lambda t: flambeau.view_as_real(flambeau.view_as_complex(
        t[4:12].view(4, 2))[1:]),
    "imaginary part": lambda t: flambeau.view_as_complex(t[4:12].view(4, 2)).imag,
}


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("part", [slice(None), slice(5, 9), slice(None, None, 2)])
def test_views_of_written_bases_find_their_place(name, part):
    """The view as it was made, against one that is made after the write."""
    x, view = leaf(24), GEOMETRIES[name]
    found = []
    for early in (True, False):
        base = x * 1
        seen = view(base) if early else None
        base[part].mul_(3)
        seen = seen if early else view(base)
        found += flambeau.autograd.grad((seen * seen).sum(), x)
    assert_close(*found)
    assert found[0].any()


def test_second_order_through_a_write():
    assert flambeau.autograd.gradgradcheck(_written, (leaf(2, 3), leaf(3)))
    assert flambeau.autograd.gradcheck(_written, (leaf(2, 3), leaf(3)), check_forward_ad=True)


def _written(x, row):
    y = x * x
    y[0].mul_(row)
    return y.exp()


def test_versions_are_shared_by_views():
    x = flambeau.zeros(4)
    view, detached = x[1:3], x.detach()
    for n, write in enumerate((lambda: x.add_(1), lambda: view.zero_(),
                               lambda: detached.fill_(2)), 1):
        write()
        assert x._version == view._version == detached._version == n


def test_saved_tensors_must_not_change():
    x, other = leaf(3), flambeau.ones(3, dtype=flambeau.float64)
    y = (x * other).sum()
    other.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    z = x.exp()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_is_not_saved_may_change():
    x = leaf(3)
    y = x + 1
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0] * 3


def test_leaves_are_protected():
    x = leaf(3)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        x[0].add_(1)
    with flambeau.no_grad():
        x.add_(1)
    assert x.is_leaf and x._version == 1


def test_data_and_detach():
    x = leaf(2)
    before = x._version
    x.data.zero_()
    assert x._version == before and x.tolist() == [0.0, 0.0]
    x.detach().fill_(1)
    assert x._version == before + 1


def test_node_names_of_writes():
    x = leaf(2, 2)
    y = x * 1
    y[0].mul_(2)
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    y.add_(1)
    assert y.grad_fn.name() == "AddBackward0"


# ---- views that must not be written to -----------------------------------------------------------

def made(how, base):
    """A view of `base` that was made in a way that forbids writes to it."""
    if how == "several":
        return base.unbind()[0]
    if how == "custom":
        class Same(flambeau.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.view_as(x)

            @staticmethod
            def backward(ctx, grad):
                return grad
        return Same.apply(base)
    with flambeau.no_grad() if how == "no_grad" else flambeau.inference_mode():
        return base.view(-1)


REASONS = {
    "no_grad": "A view was created in no_grad mode and {} modified inplace with grad mode enabled. "
               "Given that this use case is ambiguous",
    "inference": "A view was created in inference mode and {} modified inplace in normal mode. "
                 "Given that this use case is ambiguous",
    "several": "Output 0 of Unbind is a view and {} modified inplace. This view is the output of a "
               "function that returns multiple views.",
    "custom": "Output 0 of Same is a view and {} modified inplace. This view was created inside a "
              "custom Function",
}


@pytest.mark.parametrize("how", REASONS)
def test_writes_to_views_of_unknown_history_are_refused(how):
    now, before = (re.escape(REASONS[how].format(when)) for when in (
        "is being", "its base or another view of its base has been"))
    with pytest.raises(RuntimeError, match=now):
        made(how, leaf(2, 2) * 1).add_(1)
    with pytest.raises(RuntimeError, match=now):
        made(how, leaf(2, 2) * 1).unsqueeze_(0)
    assert made(how, flambeau.ones(2, 2)).add_(1).sum() in (4, 8)       # nothing is recorded
    base = leaf(2, 2) * 1
    view = made(how, base)
    base.add_(1)
    assert "grad_fn=<Invalid>" in repr(view) and view.requires_grad
    for use in (lambda: view.grad_fn, lambda: view * 2, lambda: view.is_leaf):
        with pytest.raises(RuntimeError, match=before):
            use()


@pytest.mark.parametrize("how", REASONS)
def test_a_view_of_a_forbidden_view_is_forbidden(how):
    view = made(how, leaf(2, 2) * 1).view(-1)
    reason = {"no_grad": "Output 0 of View is a view of a view which was created in no_grad mode",
              "inference": "Output 0 of View is a view of a view which was created in inference m",
              "several": "Output 0 of View is a view and is being modified inplace. This view is",
              "custom": "Output 0 of View is a view and is being modified inplace. This view was"}
    with pytest.raises(RuntimeError, match=reason[how]):
        view.mul_(2)


def test_views_made_without_recording_require_grad_as_their_base_does():
    x = leaf(3)
    with flambeau.no_grad():
        view, copy = x[1:], x[1:].clone()
    assert view.requires_grad and view.is_leaf and view.grad_fn is None and not copy.requires_grad
    assert (view * 2).requires_grad and view.requires_grad_(False).requires_grad
    with flambeau.no_grad():
        assert not (view * 2).requires_grad


def test_gradients_end_at_views_made_without_recording():
    x = leaf(3)
    with flambeau.no_grad():
        view = x[1:]
    product = view * 2
    assert [node for node, _ in product.grad_fn.next_functions] == [None, None]
    product.sum().backward()
    assert view.grad is None and x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        flambeau.autograd.grad((view * 2).sum(), view)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        view.backward(flambeau.ones(2))
    view.requires_grad_()
    (view * 2).sum().backward()
    assert view.grad.tolist() == [2, 2] and x.grad is None


def test_a_leaf_that_no_longer_requires_grad_gets_none():
    x = leaf(3)
    y = (x * 2).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None


def test_a_view_can_be_a_leaf():
    base = flambeau.zeros(4)
    view = base[:2].requires_grad_()
    (view * 3).sum().backward()
    assert view.grad.tolist() == [3, 3] and view.is_leaf and not base.requires_grad
    for written in (view, view.view(2)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            written.add_(1)
    with flambeau.no_grad():
        view.add_(1)
    assert view.is_leaf and base.tolist() == [1, 1, 0, 0]
    base.mul_(leaf(1).float())
    assert view.grad_fn.name() == "AsStridedBackward0"


def test_views_of_inference_tensors_are_inference_tensors():
    with flambeau.inference_mode():
        base = flambeau.zeros(2, 2)
    assert base[0].is_inference() and base.detach().is_inference()
    assert not base.clone().is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        base[0].add_(1)


def test_views_can_be_made_again_by_the_ops_that_made_them():
    def names():
        base = leaf(2, 3) * 1
        view = base.view(-1)[1:]
        base.add_(1)
        node = view.grad_fn
        return node.name(), node.next_functions[0][0].name()

    track = flambeau.autograd._force_original_view_tracking
    assert names() == ("AsStridedBackward0", "AddBackward0")
    with track(True):
        assert flambeau.autograd.is_view_replay_enabled()
        assert names() == ("SliceBackward0", "ViewBackward0")
        with track(False):
            assert names()[0] == "AsStridedBackward0"
    assert not flambeau.autograd.is_view_replay_enabled()


def test_gradient_of_a_base_with_gaps():
    x, w = leaf(6), leaf(2)
    base = flambeau.zeros(6, dtype=flambeau.float64)[::2].detach()
    base.add_(x[:3])
    base[1:].mul_(w)
    base.sum().backward()
    assert_close(x.grad, flambeau.cat([flambeau.ones(1).double(), w.detach(),
                                       flambeau.zeros(3).double()]))


def test_hooks_of_nodes_beside_the_way_stay_silent():
    x, y = leaf(2), leaf(2) * 1
    seen = []
    out = x.clone().view(-1)
    out.register_hook(seen.append)
    total = out + y
    out += y
    flambeau.autograd.grad((out + total).sum(), (total, y))
    assert not seen

def test_steps_over_one_element():
    """Strides of dimensions with one element are PyTorch's, where NumPy has 0."""
    b = flambeau.ones(4, 6)
    assert b[:, 0].unsqueeze(0).stride() == (24, 6) and b.T[:, None].stride() == (1, 24, 6)
    assert b.T[None].expand(3, 1, 6, 4).stride() == (0, 6, 1, 6)


def test_what_reshape_gives():
    """A view where memory allows it; else a copy that is a view of nothing."""
    b = flambeau.ones(4, 6, requires_grad=True) * 1
    names = {"ViewBackward0": (b.reshape(24), True), "ReshapeAliasBackward0": (b.T.reshape(6, 2, 2),
             True), "UnsafeViewBackward0": (b.T.reshape(24), False)}
    for name, (result, is_view) in names.items():
        assert result.grad_fn.name() == name and result._is_view() is is_view
    assert not b.repeat(2, 1)._is_view() and not b.roll(1)._is_view()


def test_sums_with_alpha_in_place():
    """The quick way of `add_(alpha=)` leaves to the other what it cannot do."""
    x, row = flambeau.arange(6.0).reshape(2, 3), flambeau.tensor([1.0, 2.0, 3.0])
    assert x.clone().add_(row, alpha=2).tolist() == (x + 2 * row).tolist()
    assert x.clone().sub_(x, alpha=2).tolist() == (-x).tolist()
    y = flambeau.arange(4.0)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        y[1:].add_(y[:-1], alpha=10)
    assert y.add_(y, alpha=10).tolist() == [0, 11, 22, 33]
    leaf = flambeau.ones(3, requires_grad=True)
    with flambeau.no_grad():
        assert leaf.add_(row, alpha=-0.5)._version == 1 and leaf.tolist() == [0.5, 0, -0.5]
    assert flambeau.add(leaf, row, alpha=2).grad_fn is not None
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        flambeau.add(x, flambeau.ones(2), alpha=2)


def graph(edge, depth=4):
    """The names of the nodes from one on, with those of their edges."""
    return [] if edge is None or not depth else [
        edge.name().rpartition("::")[2], *[graph(e, depth - 1) for e, _ in edge.next_functions]]


BEFORE = ["MulBackward0", ["AccumulateGrad"], []]


@pytest.mark.parametrize("write, history, part", [
    (lambda x, y: x[0].mul_(y), ["CopySlices", BEFORE, ["AccumulateGrad"]], [1, 2, 3, 4]),
    (lambda x, y: x[0].mul_(2).add_(1),
     ["CopySlices", ["CopySlices", BEFORE, []], []], [2, 2, 2, 2]),
    (lambda x, y: x[0].exp_(), ["CopySlices", BEFORE], np.exp([1, 2, 3, 4])),
    (lambda x, y: x[0].pow_(2), ["CopySlices", BEFORE], [2, 4, 6, 8]),
    (lambda x, y: x[0].zero_(), ["CopySlices", BEFORE], [0] * 4),
    (lambda x, y: x[0].copy_(y), ["CopySlices", BEFORE, ["AccumulateGrad"]], [0] * 4),
    (lambda x, y: x.narrow(0, 0, 1).t().squeeze(1).mul_(3), ["CopySlices", BEFORE, []], [3] * 4),
    (lambda x, y: x.__setitem__(0, 2.0), ["CopySlices", BEFORE, []], [0] * 4),
    (lambda x, y: x.__setitem__(slice(0, 1), y),
     ["CopySlices", BEFORE, ["ExpandBackward0", ["ViewBackward0", ["AccumulateGrad"]]]], [0] * 4),
    (lambda x, y: x.__setitem__(flambeau.tensor([0]), 2.0),
     ["IndexPutBackward0", BEFORE, []], [0] * 4),
    (lambda x, y: x[0].__setitem__(flambeau.tensor([0, 1, 2, 3]), y),
     ["CopySlices", BEFORE, ["AccumulateGrad"]], [0] * 4),
    (lambda x, y: flambeau.nn.functional.leaky_relu_(x[0]), ["CopySlices", BEFORE], [1] * 4),
])
def test_a_write_to_a_part_has_one_node(write, history, part):
    leaf = flambeau.arange(1.0, 9.0).reshape(2, 4).requires_grad_()
    y = flambeau.arange(1.0, 5.0).requires_grad_()
    x = leaf * 1
    write(x, y)
    assert graph(x.grad_fn) == history
    x.sum().backward()
    assert np.allclose(leaf.grad[0].numpy(), part) and leaf.grad[1].tolist() == [1] * 4


def test_a_view_gets_its_node_without_a_call():
    calls = []

    class Seen(flambeau.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return func(*args, **(kwargs or {}))
    x = leaf(2, 2) * 1
    view = x[0]
    x.mul_(2)
    with Seen():
        assert view.grad_fn.name() == "AsStridedBackward0"
    assert calls == []


def test_parts_of_views_without_a_history_are_still_refused():
    view = flambeau.zeros(4)[:2].requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.view(2)[0] = 1.0
