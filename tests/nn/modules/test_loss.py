"""Losses."""
import math

import numpy as np
from module_tests import ModuleTests
from nn_cases import Cases, as_module, floats, ints
from script_tests import ScriptTests

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
