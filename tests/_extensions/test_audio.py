"""torchaudio's ops: recorded values, and definitions."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch
from flambeau._extensions import audio
from flambeau._extensions.audio import _recursion

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from audio_cases import CALLS, evaluate, inputs

sys.path.pop(0)
RECORDED = json.loads((HERE.parent / "data" / "audio_ops.json").read_text())


@pytest.mark.parametrize("call", CALLS)
def test_values_are_torchaudios(call):
    expected, found = RECORDED[call], evaluate(torch, call, inputs(torch))
    assert found.keys() == expected.keys(), (found, expected)
    if "raises" in expected:
        kind, message = expected["raises"]
        assert found["raises"][0] == kind
        mine = found["raises"][1]
        assert message.partition(", ")[2].startswith(mine)      # after the line in its source
    for mine, theirs in zip(found.get("values", []), expected.get("values", [])):
        assert mine[:2] == theirs[:2]
        assert mine[2] == pytest.approx(theirs[2], abs=2e-6 if "32" in theirs[0] else 1e-8)


def test_the_recursion_by_blocks_is_the_plain_one():
    random = np.random.default_rng(0)
    for order, length in [(0, 5), (1, 200), (3, 64), (5, 3), (70, 200), (2, 0)]:
        a = np.concatenate([[1.0], random.normal(size=order) / (1 + 4 * order)])
        x, past = random.normal(size=(2, length)), random.normal(size=(2, order))
        y = np.concatenate([past, x], 1)
        for t in range(order, order + length):
            y[:, t] -= y[:, t - order:t] @ a[:0:-1]
        np.testing.assert_allclose(_recursion(x, a, past), y[:, order:], atol=1e-10)


def test_the_loss_is_the_sum_over_all_alignments():
    torch.manual_seed(0)
    log_probs = torch.randn(1, 3, 3, 4).double().log_softmax(-1)
    targets, blank = [2, 1], 0
    paths = []
    for places in itertools.combinations(range(4), 2):      # which of the 4 steps emit
        t = u = 0
        total = 0.0
        for step in range(4):
            label = targets[u] if step in places else blank
            total += float(log_probs[0, t, u, label])
            t, u = (t, u + 1) if step in places else (t + 1, u)
        paths.append(total + float(log_probs[0, 2, 2, blank]))
    found, _ = torch.ops.torchaudio.rnnt_loss_forward(
        log_probs.float(), torch.tensor([targets], dtype=torch.int32),
        torch.tensor([3], dtype=torch.int32), torch.tensor([2], dtype=torch.int32), blank, -1.0,
        False)
    assert float(found) == pytest.approx(-np.logaddexp.reduce(paths), rel=1e-6)


def test_what_the_extension_says_of_itself():
    assert audio and torch.ops._torchaudio.is_align_available()
    assert torch.ops._torchaudio.cuda_version() is None
