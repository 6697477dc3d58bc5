"""Values in short."""
from __future__ import annotations

import flambeau as torch
from flambeau.distributed.pipelining._debug import friendly_debug_info, map_debug_info


def test_tensors_and_others():
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    assert friendly_debug_info(x) == (
        "Tensor(torch.Size([2, 3]), grad=True, dtype=torch.float64)")
    assert friendly_debug_info(torch.tensor(1)) == (
        "Tensor(torch.Size([]), grad=False, dtype=torch.int64)")
    assert friendly_debug_info(3) == "3" and friendly_debug_info(None) == "None"


def test_structures_stay():
    x = torch.ones(1)
    found = map_debug_info((x, [1, {"k": x}], "s"))
    text = "Tensor(torch.Size([1]), grad=False, dtype=torch.float32)"
    assert tuple(found) == (text, ["1", {"k": text}], "s")
    assert map_debug_info(x) == text
