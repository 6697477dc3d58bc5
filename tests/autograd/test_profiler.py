import json
import threading

import pytest

import flambeau
from flambeau.autograd.profiler import profile, record_function
from flambeau.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from flambeau.core import engine
from flambeau.core.modes import interceptors
from flambeau.core.op import node_watchers
from flambeau.profiler import ProfilerAction, ProfilerActivity, schedule
from flambeau.profiler import profile as step_profile


def names(prof):
    return [e.name for e in prof.function_events]


def test_ops_blocks_and_nodes_nest():
    x = flambeau.ones(3, requires_grad=True)
    with profile(record_shapes=True) as prof:
        with record_function("block"):
            y = x * 2
        y.sum().backward()
    events = {e.name: e for e in reversed(prof.function_events)}
    assert events["aten::mul"].cpu_parent is events["block"]
    assert events["aten::mul"].input_shapes[0] == [3]
    node = events["MulBackward0"]
    assert node.cpu_parent.name == "autograd::engine::evaluate_function: MulBackward0"
    assert node.sequence_nr == events["aten::mul"].sequence_nr >= 0
    for event in prof.function_events:
        assert event.cpu_time_total >= sum(c.cpu_time_total for c in event.cpu_children)


def test_composites_are_seen_and_run_as_they_do_without_a_profile():
    layer = flambeau.nn.Linear(4, 2)
    x = flambeau.ones(3, 4)
    with profile(record_shapes=True) as prof:
        y = layer(x)
    shapes = [e.input_shapes for e in prof.function_events if e.name == "aten::linear"]
    assert shapes == [[[3, 4], [2, 4], [2]]]
    assert type(y.grad_fn) is type(layer(x).grad_fn)


def test_nothing_is_left_behind():
    before = len(interceptors), len(node_watchers), engine.anomaly.enabled
    with pytest.raises(ZeroDivisionError), profile():
        1 / 0
    assert (len(interceptors), len(node_watchers), engine.anomaly.enabled) == before


def test_memory_and_tables():
    with profile(profile_memory=True, with_stack=True) as prof:
        flambeau.ones(256).exp().sin()
    total = prof.total_average()
    assert total.cpu_memory_usage >= 2048
    table = prof.key_averages().table(sort_by="self_cpu_time_total")
    assert "aten::exp" in table and "CPU Mem" in table and "Self CPU time total" in table
    assert any("test_profiler" in frame for frame in prof.function_events[0].stack)
    assert str(prof) == prof.table()


def test_chrome_trace(tmp_path):
    with profile() as prof:
        flambeau.ones(2).exp()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    assert json.loads(path.read_text())[0]["name"] == "aten::exp"


def test_children_by_time():
    spans = {1: [(0, 1, 1), (1, 2, 2)], 0: [(0, 2, 3), (1, 2, 4), (1, 3, 5)]}
    events = EventList(FunctionEvent(id=i, name="", thread=t, start_us=a, end_us=b)
                       for t, all_of in spans.items() for a, b, i in all_of)
    events._populate_cpu_children()
    assert [[c.id for c in e.cpu_children] for e in events] == [[], [], [], [], [4]]


def test_averages():
    average = FunctionEventAvg()
    for start, end in ((10, 15), (20, 30)):
        average.add(FunctionEvent(id=0, name="foo", thread=0, start_us=start, end_us=end))
    average.add(average)
    assert (average.count, average.cpu_time_total, average.cpu_time) == (4, 30, 7.5)


def test_decorator_and_exit_in_another_order():
    @record_function("named")
    def f():
        return 1
    with profile() as prof:
        f()
        first, second = record_function("a").__enter__(), record_function("b").__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    assert names(prof) == ["named", "a", "b"]


def test_other_threads_are_not_slowed():
    seen = []

    def work():
        seen.append((flambeau.ones(2) * 3).tolist())
    with profile() as prof:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [[3.0, 3.0]] and names(prof) == []


def test_steps():
    ready = []
    with step_profile(activities=[ProfilerActivity.CPU],
                      schedule=schedule(wait=1, warmup=1, active=2, repeat=1),
                      on_trace_ready=lambda p: ready.append((p.step_num, len(p.events())))) as prof:
        for _ in range(6):
            flambeau.ones(1).exp()
            prof.step()
    assert ready == [(4, 4)]
    assert [e.name for e in prof.events()][::2] == ["ProfilerStep#2", "ProfilerStep#3"]
    plan = schedule(wait=1, warmup=1, active=2, skip_first=1)
    assert [plan(i) for i in range(6)] == [
        ProfilerAction.NONE, ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
        ProfilerAction.RECORD_AND_SAVE, ProfilerAction.NONE]
