"""Layers that `flambeau/ops/loss/cross_entropy.py` computes."""
import numpy as np
import pytest
from layer_tests import LayerTests
from layers import REDUCTIONS, WEIGHT, Cases

import flambeau
import flambeau as torch
import flambeau.nn.functional as F
from flambeau import func

cases = Cases()
simple = cases.simple
cases.classes("cross_entropy", lambda t, F, x, y, r: F.cross_entropy(x, y, reduction=r))
cases.classes("cross_entropy_smooth", lambda t, F, x, y, r: F.cross_entropy(
    x, y, reduction=r, label_smoothing=0.2))
cases.classes("cross_entropy_all", lambda t, F, x, y, r: F.cross_entropy(
    x, y, t.tensor(WEIGHT, dtype=x.dtype), ignore_index=2, reduction=r, label_smoothing=0.1))
cases.classes("cross_entropy_images", lambda t, F, x, y, r: F.cross_entropy(
    x, y, t.tensor(WEIGHT, dtype=x.dtype), ignore_index=1, reduction=r, label_smoothing=0.1),
    (2, 4, 2, 3))
cases.classes("nll_loss", lambda t, F, x, y, r: F.nll_loss(
    x, y, t.tensor(WEIGHT, dtype=x.dtype), reduction=r, ignore_index=1))
cases.classes("nll_loss_images", lambda t, F, x, y, r: F.nll_loss(x, y, reduction=r), (2, 4, 2, 2))
cases.pair("cross_entropy_soft", lambda t, F, x, y, r: F.cross_entropy(
    x, y, t.tensor(WEIGHT, dtype=x.dtype), reduction=r, label_smoothing=0.1), "positive")
simple("cross_entropy_one", lambda t, F, x: F.cross_entropy(x, t.tensor(2)), (4,))


for _reduction in REDUCTIONS:
    @cases(f"ctc_{_reduction}")
    def _(torch, make, _r=_reduction):
        F = torch.nn.functional
        logs = F.log_softmax(make(6, 3, 4), 2)
        targets = torch.tensor([[1, 1, 2], [3, 2, 0], [1, 0, 0]])
        return F.ctc_loss(logs, targets, [6, 5, 4], [3, 2, 1], reduction=_r)


class TestLayers(LayerTests):
    cases = cases


@pytest.mark.parametrize("kind", ["none", "mean", "sum"])
@pytest.mark.parametrize("flat", [False, True])
def test_ctc_loss_of_batched_lengths(kind, flat, no_loops):
    """Each slice may have other lengths, also none at all."""
    maker = flambeau.Generator().manual_seed(1)
    logs = flambeau.randn(3, 5, 2, 4, dtype=flambeau.double, generator=maker).log_softmax(3)
    targets = flambeau.randint(1, 4, (3, 4) if flat else (3, 2, 2), generator=maker)
    steps = flambeau.tensor([[5, 4], [3, 5], [0, 5]])
    lengths = flambeau.tensor([[2, 2], [2, 2], [2, 2]] if flat else [[2, 1], [0, 2], [0, 1]])

    def loss(*given):
        return flambeau.nn.functional.ctc_loss(*given, reduction=kind)

    def slope(*given):
        return func.grad(lambda *a: loss(*a).nan_to_num(posinf=0.0).sum())(*given)

    for function in (loss, slope):
        found = func.vmap(function)(logs, targets, steps, lengths)
        for k, one in enumerate(zip(logs, targets, steps, lengths)):
            np.testing.assert_allclose(found[k].numpy(), function(*one).numpy(), atol=1e-12)


def test_ctc_loss_wants_three_dimensions():
    ones, lengths = torch.ones(2, 3, dtype=torch.int64), torch.tensor([1, 1])
    with pytest.raises(RuntimeError, match="Expected 3-dimensional tensor, but got 5-dimensional"):
        F.ctc_loss(torch.ones(1, 2, 3, 4), ones, lengths, lengths)
    for targets in (torch.tensor(3), ones.reshape(2, 3, 1)):
        with pytest.raises(RuntimeError, match="Expected 1 to 2 dimensions, but got"):
            F.ctc_loss(torch.ones(5, 2, 4), targets, lengths, lengths)


@pytest.mark.parametrize("steps, targets, input_lengths, lengths, message", [
    (0, [[1, 2], [1, 3]], [5, 5], [2, 2], "log_probs tensor must not be empty"),
    (3, [[1, 2]], [3, 3], [2, 2], "Expected tensor to have size 2 at dimension 0, but got size 1"),
    (3, [[1, 2], [1, 3]], [3, 5], [2, 3],
     "Expected tensor to have size at least 3 at dimension 1, but got size 2"),
    (3, [1, 2, 1], [3, 5], [2, 2], "Expected tensor to have size 4 at dimension 0, but got size 3"),
    (3, [[1, 2], [1, 3]], [3, 5], [2, 2],
     "Expected input_lengths to have value at most 3, but got value 5")])
def test_ctc_loss_says_what_is_too_short(steps, targets, input_lengths, lengths, message):
    with pytest.raises(RuntimeError, match=message):
        F.ctc_loss(torch.zeros(steps, 2, 4), torch.tensor(targets), input_lengths, lengths)
