"""Actions in text."""
from __future__ import annotations

import pytest

from flambeau.distributed.pipelining.schedules import _Action, _ComputationType


def test_actions_are_read_as_they_are_written():
    for text in ("0F0", "12RECV_B3", "2UNSHARD", "1REDUCE_GRAD", "(0F1;3B0)OVERLAP_F_B"):
        assert str(_Action.from_str(text)) == text
    assert _Action.from_str("  ") is None
    assert _Action.from_str("3W2") == (3, _ComputationType.BACKWARD_WEIGHT, 2, None)
    for text in ("F1", "0X1", "0F1 0F2", "(x)OVERLAP_F_B"):
        with pytest.raises(RuntimeError, match="Invalid action string"):
            _Action.from_str(text)
    with pytest.raises(RuntimeError, match="Invalid computation type X"):
        _ComputationType.from_str("X")
