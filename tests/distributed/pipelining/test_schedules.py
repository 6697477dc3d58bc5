"""Schedules by their names, and which counts they work with."""
from __future__ import annotations

import pytest

from flambeau.distributed.pipelining import schedules
from flambeau.distributed.pipelining._schedule_visualizer import get_schedule_ops
from flambeau.distributed.pipelining.schedules import get_schedule_class


def test_names_of_schedules():
    assert get_schedule_class("1f1b") is schedules.Schedule1F1B
    with pytest.raises(ValueError, match=r"Unknown schedule name 'foo'\. The valid options are"):
        get_schedule_class("foo")
    with pytest.raises(ValueError, match=r"multiple of the number of rounds \(2\), but got 5"):
        get_schedule_ops("Interleaved1F1B", 2, 5, 2)
    with pytest.raises(ValueError, match="ZBV requires exactly 2 stages per rank, but got 3"):
        get_schedule_ops("ZBVZeroBubble", 2, 4, 3)
    with pytest.raises(ValueError, match="at least as many microbatches as stages"):
        get_schedule_ops("DualPipeV", 2, 3)
    with pytest.raises(ValueError, match="greater than or equal to the number of stages"):
        get_schedule_ops("1F1B", 4, 3)


@pytest.mark.parametrize("name", ["GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS",
                                  "InterleavedZeroBubble", "ZBVZeroBubble", "DualPipeV",
                                  "PipelineScheduleSingle", "PipelineScheduleMulti"])
def test_case_does_not_matter(name):
    found = get_schedule_class(name)
    assert found is get_schedule_class(name.upper()) is get_schedule_class(name.lower())
    assert found.__name__ in (name, f"Schedule{name}")
