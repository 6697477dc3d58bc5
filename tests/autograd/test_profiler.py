import threading

import pytest

import flambeau
from flambeau.autograd.profiler import profile, record_function
from flambeau.core.autograd.recording import node_watchers
from flambeau.core.modes import anomaly, interceptors


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
    before = len(interceptors), len(node_watchers), anomaly.enabled
    with pytest.raises(ZeroDivisionError), profile():
        1 / 0
    assert (len(interceptors), len(node_watchers), anomaly.enabled) == before


def test_memory_and_tables():
    with profile(profile_memory=True, with_stack=True) as prof:
        flambeau.ones(256).exp().sin()
    total = prof.total_average()
    assert total.cpu_memory_usage >= 2048
    table = prof.key_averages().table(sort_by="self_cpu_time_total")
    assert "aten::exp" in table and "CPU Mem" in table and "Self CPU time total" in table
    assert any("test_profiler" in frame for frame in prof.function_events[0].stack)
    assert str(prof) == prof.table()


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


def test_new_tensors_are_events_and_internal_ops_are_not():
    with profile() as prof:
        x = flambeau.randn(3, 4, requires_grad=True)
        (x[0].sum() + x[:1].sum(dim=None)).backward()
    found = names(prof)
    assert found[:3] == ["aten::randn", "aten::empty", "aten::select"]
    assert found.count("aten::sum") == 2 and "aten::slice" in found
    assert not any(name.startswith(("aten::_", "aten::select_", "aten::basic")) for name in found)
    leaf = "torch::autograd::AccumulateGrad"
    assert found[-3:] == [f"autograd::engine::evaluate_function: {leaf}", leaf, "aten::add_"]


def test_a_profile_does_not_change_what_runs():
    x = flambeau.randn(4, 3, requires_grad=True)
    y = flambeau.nn.functional.layer_norm(x, (3,)).sum()
    with profile() as prof:
        y.backward()
    inside = next(e for e in prof.function_events if e.name == "NativeLayerNormBackward0")
    only, = inside.cpu_children                   # the kernel, not the ops that define it
    assert (only.name, only.cpu_children) == ("aten::native_layer_norm_backward", [])
    held = x.grad
    x.grad = None
    with profile():
        (x * 1).sum().backward()
    assert x.grad is not held and x.grad.is_contiguous()


def test_a_profile_sees_what_a_fork_does():
    def work(x):
        with record_function("inner"):
            return x * 2
    with profile() as prof:
        flambeau.jit._wait(flambeau.jit._fork(work, flambeau.ones(2)))
    assert names(prof) == ["aten::ones", "inner", "aten::mul"]


def test_misuse_is_named():
    from flambeau import profiler
    with pytest.raises(AssertionError, match=r"Got wait=-1 \(need >= 0\), warmup=1"):
        profiler.schedule(wait=-1, warmup=1, active=2)
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profiler.profile(activities=[])
    with pytest.raises(AssertionError, match="must be initialized before getting key averages"):
        profiler.profile().key_averages()


def test_blocks_that_are_opened_and_closed():
    with profile() as prof:
        block = flambeau.ops.profiler._record_function_enter_new("step", None)
        flambeau.ones(2) + 1
        flambeau.ops.profiler._record_function_exit._RecordFunction(block)
    assert "step" in [event.name for event in prof.function_events]
