"""Profiles of steps, by a schedule."""


import pytest

import flambeau
from flambeau.profiler import ProfilerAction, ProfilerActivity, schedule
from flambeau.profiler import profile as step_profile


def test_steps():
    ready = []
    with step_profile(activities=[ProfilerActivity.CPU],
                      schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                      on_trace_ready=lambda p: ready.append((p.step_num, len(p.events())))) as prof:
        for _ in range(6):
            flambeau.ones(1).exp()
            prof.step()
    assert ready == [(4, 6)]
    assert [e.name for e in prof.events()][::3] == ["ProfilerStep#2", "ProfilerStep#3"]
    plan = schedule(wait=1, warmup=1, active=2, skip_first=1)
    assert [plan(i) for i in range(6)] == [
        ProfilerAction.NONE, ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
        ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE]


@pytest.mark.parametrize("options, expected", [
    ({"wait": 1, "warmup": 1, "active": 2}, "NWRSNWRS"),
    ({"wait": 0, "warmup": 0, "active": 1, "skip_first": 3}, "NNNSSSSS"),
    ({"wait": 1, "warmup": 0, "active": 1, "repeat": 2}, "NSNSNNNN"),
    ({"wait": 2, "warmup": 0, "active": 1, "skip_first": 1, "skip_first_wait": 1}, "NSNNSNNS")])
def test_schedules(options, expected):
    letters = {ProfilerAction.NONE: "N", ProfilerAction.WARMUP: "W", ProfilerAction.RECORD: "R",
               ProfilerAction.RECORD_AND_SAVE: "S"}
    plan = schedule(**options)
    assert "".join(letters[plan(step)] for step in range(8)) == expected


def test_schedules_that_are_none():
    with pytest.raises(AssertionError, match="Invalid profiler schedule arguments"):
        schedule(wait=1, warmup=0, active=0)
    with pytest.raises(AssertionError, match="Step must be non-negative"):
        schedule(wait=0, warmup=0, active=1)(-1)


def test_traces_begin_and_end_by_hand():
    prof = step_profile(record_shapes=True)
    with pytest.raises(AssertionError, match="must be initialized before starting trace"):
        prof.start_trace()
    prof.prepare_trace()
    prof.start_trace()
    flambeau.ones(2) + 1
    prof.stop_trace()
    assert "aten::add" in {event.name for event in prof.events()} and prof.record_shapes
