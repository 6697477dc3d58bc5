"""Rules of the engine that a change could break without a wrong number elsewhere."""

import numpy as np
import pytest

import flambeau
from flambeau.core.promotion import result_type

BFLOAT16 = flambeau.ones(2, dtype=flambeau.bfloat16)._array


def test_a_captured_gradient_has_been_through_the_tensors_hooks():
    x = flambeau.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    found, = flambeau.autograd.grad(y.sum(), y)
    assert found.tolist() == [10.0, 10.0]


def test_gradients_of_quotients_round_once():
    grad = flambeau.tensor([1.0, 5.0, 7.0, 11.0])
    by = flambeau.tensor([3.0, 49.0, 10.0, 41.0])
    for function, divisor in ((lambda x: x / by, by), (lambda x: x / 3, 3), (flambeau.log, by),
                              (flambeau.sqrt, 2 * by.sqrt()), (flambeau.log1p, by + 1),
                              (flambeau.atan, by * by + 1)):
        x = by.clone().requires_grad_()
        function(x).backward(grad)
        assert x.grad.equal(grad / divisor)
        assert flambeau.func.jvp(function, (by,), (grad,))[1].equal(grad / divisor)


def test_post_accumulate_hooks_return_nothing_or_the_leaf():
    x = flambeau.zeros(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.sub_(leaf.grad))
    (3 * x).sum().backward()
    assert x.tolist() == [-3, -3]
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad)
    with pytest.raises(RuntimeError, match="should return None"):
        x.sum().backward()


def test_post_accumulate_hooks_see_the_accumulated_gradient():
    x = flambeau.ones(2, requires_grad=True)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 3).sum().backward()
    assert seen == [[3.0, 3.0]]


def test_one_of_several_views_cannot_be_written_to():
    base = flambeau.ones(2, 2, requires_grad=True) * 1
    first, _ = base.unbind(0)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        first.mul_(2)
    with pytest.raises(RuntimeError, match="returns multiple views"):
        first[:1].mul_(2)


class Wrapped(flambeau.Tensor):
    """A tensor whose calls all go through Python."""


def test_a_view_made_without_grad_cannot_be_written_to_with_it():
    base = flambeau.ones(2, requires_grad=True) * 1
    with flambeau.no_grad():
        view = base[:1]
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.mul_(2)
    for inner in (view[:1], view.as_subclass(Wrapped)[:1]):      # made by C++, and by Python
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            inner.mul_(2)


@pytest.mark.parametrize("arrays, numbers, expected", [
    ([np.ones(2, np.float16), np.ones((), np.float64)], [], flambeau.float16),
    ([np.ones(2, np.int8), np.ones((), np.int64)], [], flambeau.int8),
    ([np.ones(2, np.int8), np.ones((), np.float64)], [], flambeau.float64),
    ([np.ones(2, np.uint8), np.ones(2, np.int8)], [], flambeau.int16),
    ([np.ones(2, np.int64)], [2.5], flambeau.float32),
    ([np.ones(2, np.float16), BFLOAT16], [], flambeau.float32),
    ([np.ones(2, np.float64)], [1j], flambeau.complex128),
    ([np.ones(2, np.float64), np.ones((), np.complex64)], [], flambeau.complex128),
    ([np.ones(2, np.complex64), np.ones(2, np.complex128)], [], flambeau.complex128),
    ([np.ones(2, np.uint16)], [1j], flambeau.complex64),
    ([np.ones(2, np.float16)], [1j], flambeau.complex32),
    ([np.ones(2, np.float16), np.ones((), np.complex128)], [], flambeau.complex32),
    ([np.ones((), np.float32)], [True], flambeau.float32),
])
def test_tiers_of_promotion(arrays, numbers, expected):
    assert result_type(arrays, numbers) is expected


def test_a_gradient_that_is_added_to_counts_as_written():
    x = flambeau.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    grad, weight = x.grad, flambeau.ones(2, requires_grad=True)
    product = (weight * grad).sum()
    versions = [grad._version]
    for _ in range(2):
        (x * 2).sum().backward()
        versions.append(grad._version)
    assert x.grad is grad and versions == [0, 1, 2]
    with pytest.raises(RuntimeError, match="is at version 2; expected version 0"):
        product.backward()


def test_a_gradient_that_somebody_holds_is_copied():
    x = flambeau.ones(2, requires_grad=True)
    held = []
    y = x * 1
    y.register_hook(held.append)
    y.backward(flambeau.ones(2))
    x.grad.zero_()
    assert held[0].tolist() == [1.0, 1.0]


def test_a_negative_zero_keeps_its_sign():
    x = flambeau.ones(1)
    assert np.signbit((x * -0.0).numpy()) and not np.signbit((x * 0.0).numpy())


def test_saved_tensors_notice_writes():
    x = flambeau.ones(2, requires_grad=True)
    y = x * 1
    saved_input = y.sin()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved_input.sum().backward()
    saved_result = (x * 1).exp()
    saved_result.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved_result.sum().backward()
    rows = flambeau.tensor([0, 0])      # still indices after the write
    saved_in_a_list = x[rows]
    rows.add_(1)
    with pytest.raises(RuntimeError, match=r"LongTensor \[2\]\] is at version 1"):
        saved_in_a_list.sum().backward()


def test_a_leaf_cannot_be_written_to():
    x = flambeau.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        x[:1].add_(1)


def test_gradients_of_a_written_base():
    w = flambeau.tensor([2.0, 3.0], requires_grad=True)
    base = flambeau.ones(3, requires_grad=True) * 1
    base.retain_grad()
    base[:2].mul_(w)
    (base * flambeau.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert w.grad.tolist() == [1.0, 10.0]
    assert base.grad.tolist() == [1.0, 10.0, 100.0]


def test_backward_to_an_inner_tensor_goes_on_to_the_leaf_behind_it():
    leaf = flambeau.ones(2, requires_grad=True)
    mid = leaf * 2
    mid.retain_grad()
    (mid * 3).sum().backward(inputs=[mid, leaf])
    assert mid.grad.tolist() == [3.0, 3.0]
    assert leaf.grad.tolist() == [6.0, 6.0]


def test_backward_to_an_inner_tensor_runs_its_node_but_fills_no_leaf():
    leaf = flambeau.ones(2, requires_grad=True)
    mid = leaf.exp()
    ran = []
    mid.grad_fn.register_hook(lambda *_: ran.append(True))
    mid.sum().backward(inputs=[mid])
    assert mid.grad.tolist() == [1.0, 1.0] and leaf.grad is None
    assert ran == [True]
    with pytest.raises(RuntimeError, match="a second time"):
        mid.sum().backward()


@pytest.mark.parametrize("call, kept", [
    (lambda a, b: a * b, "other"), (lambda a, b: b * a, "self"), (lambda a, b: a @ b, "mat2"),
    (lambda a, b: b @ a, "self"), (lambda a, b: a / b, "other"), (lambda a, b: b / a, "self other"),
    (lambda a, b: flambeau.addmm(a, b, b), ""), (lambda a, b: flambeau.addmm(b, a, b), "mat2"),
])
def test_values_are_kept_only_for_inputs_that_require_grad(call, kept):
    names = {"mul": "self other", "div": "self other", "mm": "self mat2", "addmm": "mat1 mat2"}
    node = call(flambeau.ones(2, 2, requires_grad=True), flambeau.ones(2, 2)).grad_fn
    every = names[node.name().removesuffix("Backward0").lower()].split()
    assert [n for n in every if getattr(node, f"_saved_{n}") is not None] == kept.split()


def test_what_no_gradient_needs_may_be_written_to():
    leaf, number = flambeau.ones(2, requires_grad=True), flambeau.full((2,), 3.0)
    scaled = leaf * 1
    product = scaled * number
    scaled.add_(1)
    product.sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("function, slopes", [
    (lambda z, w: z * w, (2 + 4j, 3 - 1j)), (lambda z, w: z * (2 + 1j) + w, (3 + 1j, 1 + 1j)),
    (lambda z, w: z / w, (0.4 + 0.2j, -0.18 + 0.26j)),
    (lambda z, w: flambeau.log(z) + w, (-0.2 + 0.6j, 1 + 1j)),
    (lambda z, w: flambeau.exp(z) * w, (7.6244 - 9.4682j, 1.3405 - 3.6029j)),
])
def test_complex_derivatives_are_conjugated(function, slopes):
    """Values by PyTorch, at z = 1 + 2i, w = 3 - i for the gradient 1 + i."""
    z = flambeau.tensor(1 + 2j, requires_grad=True)
    w = flambeau.tensor(3 - 1j, requires_grad=True)
    found = flambeau.autograd.grad(function(z, w), (z, w), flambeau.tensor(1 + 1j))
    assert [g.item() for g in found] == [pytest.approx(s, rel=1e-4) for s in slopes]


def test_first_gradients_of_recorded_passes_have_memory_of_their_own():
    for create_graph in (False, True):
        x, given = flambeau.ones(2, requires_grad=True), flambeau.ones(2)
        (x + 1).backward(given, create_graph=create_graph)
        assert x.grad is not given and x.grad.data_ptr() != given.data_ptr()
        x.grad.zero_()
        assert given.tolist() == [1.0, 1.0]
        w = flambeau.full((2,), 3.0, requires_grad=True)
        ((w * w) * 2).sum().backward(create_graph=create_graph)
        assert w.grad.requires_grad is create_graph


def test_anomaly_mode_marks_the_nodes_that_are_made_in_it():
    x = flambeau.ones(2, requires_grad=True)
    calls = [lambda: x * 2, lambda: x.sum(), lambda: x.split(1)[0], lambda: x.clone().mul_(2),
             lambda: flambeau.cat([x, x]), lambda: flambeau.nn.functional.linear(x, x[None])]
    for call in calls:
        with flambeau.autograd.set_detect_anomaly(True):
            assert list(call().grad_fn.metadata) == ["traceback_"]
        assert not call().grad_fn.metadata


NOT_FOR_EXPANDED = ["add_", "mul_", "copy_", "exp_", "clamp_", "lerp_", "scatter_", "uniform_"]


@pytest.mark.parametrize("name", NOT_FOR_EXPANDED)
def test_expanded_tensors_are_not_written_to(name):
    expanded, one = flambeau.ones(1).expand(3), flambeau.ones(3)
    args = {"exp_": (), "uniform_": (), "clamp_": (0,), "lerp_": (one, 0.5),
            "scatter_": (0, flambeau.tensor([0]), 1.0)}.get(name, (one,))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        getattr(expanded, name)(*args)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        flambeau.add(one, 1, out=expanded)
    assert expanded.tolist() == [1.0] * 3
    getattr(flambeau.ones(1).expand(1), name)(*[
        a[:1] if isinstance(a, flambeau.Tensor) else a for a in args])


def test_expanded_tensors_can_be_filled():
    assert flambeau.ones(1).expand(3).fill_(3).tolist() == [3.0] * 3
    assert flambeau.ones(1).expand(3).zero_().tolist() == [0.0] * 3


@pytest.mark.parametrize("base", [0, 0j, flambeau.zeros(6), flambeau.zeros(6) * 1j])
def test_powers_of_zero_are_flat_for_real_exponents_that_are_not_negative(base):
    exponent = flambeau.tensor([0, 1, 2, 1j, 1 + 1j, -1 + 0j], requires_grad=True)
    flambeau.pow(base, exponent).backward(flambeau.ones(6, dtype=flambeau.complex64))
    assert exponent.grad[:3].tolist() == [0, 0, 0] and exponent.grad[3:].isnan().all()
