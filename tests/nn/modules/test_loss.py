"""Losses."""
import math

import numpy as np
import pytest
from module_tests import ModuleTests
from nn_cases import Cases, as_module, floats, ints
from script_tests import ScriptTests

import flambeau as torch
from flambeau import nn

cases = Cases()
TWO = ((3, 4), floats(-1, 1, (3, 4)))
POSITIVE = ((3, 4), floats(0.1, 2, (3, 4)))
CLASSES = ((3, 5), ints(5, (3,)))
WEIGHT = "weight=t.tensor([0.5, 1.0, 2.0, 0.1, 3.0])"


def signs(*shape):
    values = np.sign(np.cos(np.arange(math.prod(shape)) * 2.0)).astype(np.float32)
    return lambda t: t.tensor(values).reshape(shape)


TABLE = [
    ("L1Loss", "", TWO),
    ("MSELoss", "", TWO),
    ("SmoothL1Loss", "beta=0.7", TWO),
    ("HuberLoss", "delta=0.7", TWO),
    ("PoissonNLLLoss", "full=True", POSITIVE),
    ("PoissonNLLLoss", "log_input=False", (floats(0.1, 2, (3, 4)), floats(0, 3, (3, 4)))),
    ("GaussianNLLLoss", "full=True", (*TWO, floats(0.2, 2, (3, 4)))),
    ("NLLLoss", "", CLASSES),
    ("NLLLoss", WEIGHT, CLASSES),
    ("NLLLoss", "ignore_index=1", ((2, 4, 3, 2), ints(4, (2, 3, 2)))),
    ("CrossEntropyLoss", "", CLASSES),
    ("CrossEntropyLoss", WEIGHT + ", label_smoothing=0.2", CLASSES),
    ("CrossEntropyLoss", "ignore_index=2", ((2, 4, 3), ints(4, (2, 3)))),
    ("CrossEntropyLoss", WEIGHT, ((3, 5), floats(0, 1, (3, 5)))),
    ("BCELoss", "", (floats(0.1, 0.9, (3, 4)), floats(0, 1, (3, 4), False))),
    ("BCEWithLogitsLoss", "pos_weight=t.tensor([1.0, 2.0, 0.5, 3.0])",
     ((3, 4), floats(0, 1, (3, 4), False))),
    ("KLDivLoss", "", ((3, 4), floats(0, 1, (3, 4)))),
    ("KLDivLoss", "log_target=True", TWO),
    ("SoftMarginLoss", "", ((3, 4), signs(3, 4))),
    ("HingeEmbeddingLoss", "margin=0.5", ((3, 4), signs(3, 4))),
    ("MultiLabelMarginLoss", "", ((2, 4), lambda t: t.tensor([[3, 0, -1, 1], [1, -1, 0, 0]]))),
    ("MultiLabelSoftMarginLoss", "", ((3, 4), floats(0, 1, (3, 4), False))),
    ("MultiMarginLoss", "p=2, margin=0.7, " + WEIGHT, CLASSES),
    ("CosineEmbeddingLoss", "margin=0.1", ((3, 4), (3, 4), signs(3))),
    ("MarginRankingLoss", "margin=0.3", ((5,), (5,), signs(5))),
    ("TripletMarginLoss", "swap=True", ((3, 4), (3, 4), (3, 4))),
    ("TripletMarginWithDistanceLoss", "", ((3, 4), (3, 4), (3, 4))),
]
for i, (name, options, inputs) in enumerate(TABLE):
    for reduction in ("mean", "sum", "none"):
        cases.plain(name, *inputs, name=f"{name}-{i}-{reduction}",
                    options=f"{options}{', ' if options else ''}reduction={reduction!r}")


def ctc(t, scores):
    targets = t.tensor([[1, 2, 2], [3, 1, 0]])
    return t.nn.CTCLoss()(scores, targets, t.tensor([6, 5]), t.tensor([3, 2]))


cases("CTCLoss", lambda t: t.nn.Sequential(
    as_module(t, lambda x: x.log_softmax(2)), as_module(t, lambda x: ctc(t, x), "Loss")), (6, 2, 4))


class TestLayers(ModuleTests):
    cases = cases


class TestScripts(ScriptTests):
    topics = ("modules/loss",)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_of_no_classes(smoothing):
    none = torch.rand(2, 0)
    losses = {reduction: nn.CrossEntropyLoss(reduction=reduction, label_smoothing=smoothing)(
        none, none) for reduction in ("none", "sum", "mean")}
    assert losses["none"].tolist() == [0, 0] and losses["sum"].item() == 0
    assert losses["mean"].isnan()
    with pytest.raises(IndexError, match="Dimension specified as 1 but tensor has no dimensions"):
        nn.CrossEntropyLoss()(torch.tensor(1.0), torch.tensor(1.0))


def test_cross_entropy_is_the_log_of_softmax():
    x, t = torch.rand(4, 3), torch.tensor([0, 2, 1, 1])
    wanted = -x.softmax(1).log()[torch.arange(4), t]
    torch.testing.assert_close(nn.CrossEntropyLoss(reduction="none")(x, t), wanted)
    one_hot = nn.functional.one_hot(t, 3).float()
    torch.testing.assert_close(nn.CrossEntropyLoss()(x, one_hot), wanted.mean())
    torch.testing.assert_close(nn.NLLLoss()(x.log_softmax(1), t), wanted.mean())


def test_weights_go_with_the_module():
    loss = nn.BCEWithLogitsLoss(weight=torch.ones(2), pos_weight=torch.ones(2)).double()
    assert loss.weight.dtype is loss.pos_weight.dtype is torch.float64
    assert list(loss.state_dict()) == ["weight", "pos_weight"]


def test_constants_of_losses():
    for layer in (nn.L1Loss, nn.MSELoss, nn.BCELoss, nn.KLDivLoss, nn.SoftMarginLoss,
                  nn.SmoothL1Loss, nn.MultiLabelMarginLoss, nn.MultiLabelSoftMarginLoss):
        assert layer.__constants__ == ["reduction"]
    assert not hasattr(nn.BCEWithLogitsLoss, "__constants__")
