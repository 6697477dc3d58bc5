"""torchvision's ops: recorded values and schemas."""

import json
import sys
from pathlib import Path

import pytest

import flambeau as torch
from flambeau._extensions import vision  # noqa: F401 - registers the ops

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from vision_cases import CALLS, evaluate, inputs

sys.path.pop(0)
RECORDED = json.loads((HERE.parent / "data" / "vision_ops.json").read_text())
ops = torch.ops.torchvision


@pytest.mark.parametrize("call", CALLS)
def test_values_and_gradients_are_torchvisions(call):
    expected, found = RECORDED[call], evaluate(torch, call, inputs(torch))
    assert found.keys() == expected.keys(), found
    assert found.get("raises") == expected.get("raises")
    for mine, theirs in zip(found.get("values", []), expected.get("values", [])):
        assert mine[:2] == theirs[:2]
        assert mine[2] == pytest.approx(theirs[2], abs=1e-9)
    for name, gradient in expected.get("gradients", {}).items():
        if "ps_roi_pool" not in call:       # whose gradient in torchvision is not its derivative
            mine = found["gradients"].get(name, [0.0] * len(gradient))
            assert mine == pytest.approx(gradient, abs=1e-9), name


def test_the_ops_have_torchvisions_schemas():
    assert str(ops.nms.default) == "torchvision.nms.default"
    assert str(ops.nms.default._schema) == (
        "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    assert ops._cuda_version() == -1
