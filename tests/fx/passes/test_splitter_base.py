"""Graphs split into parts for an accelerator and parts that stay."""
from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.fx.passes import splitter_base as splitting
from flambeau.fx.passes.operator_support import create_op_support

X = torch.arange(4.0).view(2, 2)


def model(x):
    a = x.sin()
    b = a.cos()
    c = b.exp()
    rows = c.size(0)
    return c.view(rows, -1).sin() + a, b


def splitter(supported, **settings):
    return splitting._SplitterBase(
        fx.symbolic_trace(model), (X,), create_op_support(lambda _, node: node.name in supported),
        splitting._SplitterSettingBase(**settings))


@pytest.mark.parametrize("supported, parts", [
    ((), ["_run_on_cpu_0"]), (("sin", "cos", "exp", "size", "view", "sin_1", "add"),
                              ["_run_on_acc_0"]),
    (("sin", "cos"), ["_run_on_acc_0", "_run_on_cpu_1"]),
    (("exp", "sin_1"), ["_run_on_cpu_0", "_run_on_acc_1", "_run_on_cpu_2", "_run_on_acc_3",
                        "_run_on_cpu_4"])])
def test_parts_take_turns_and_compute_what_the_whole_does(supported, parts, capsys):
    split, inputs, prefix = splitter(supported).generate_split_results()
    assert [name for name, _ in split.named_children()] == parts == list(inputs)
    for got, whole in zip(split(X), model(X)):
        torch.testing.assert_close(got, whole)
    assert prefix == "_run_on_cpu_"
    acc = sum("acc" in part for part in parts)
    assert capsys.readouterr().out == \
        f"Got {acc} acc subgraphs and {len(parts) - acc} non-acc subgraphs\n"


def test_what_is_no_tensor_does_not_pass_between_parts():
    assert {node.name for node in splitter(("size", "sin"))().graph.nodes
            if node.op == "call_module"} == {"_run_on_acc_0", "_run_on_cpu_1"}
    assert "size" in {n.name for n in splitter(
        ("size",), allow_non_tensor=True, skip_fusion=True).acc_nodes}


def test_small_parts_join_those_beside_them():
    kept = splitter(("sin", "exp"), min_acc_module_size=2)
    kept()
    assert kept.tags == ["_run_on_cpu_0"] and set(kept.get_node_submodule_map().values()) \
        == {"_run_on_cpu_0"}
    with pytest.raises(ValueError, match="max_acc_splits"):
        splitter(("sin", "exp"), max_acc_splits=1)()


def test_reports_say_what_is_supported_and_what_passes(capsys):
    report = splitter(("sin", "cos")).node_support_preview()
    assert "Supported node types in the model:\nsin: ((torch.float32,), {})" in report
    report = splitter(("sin", "cos")).split_preview()
    assert "_run_on_acc_0: 2 node(s)" in report
    assert "Total input size in bytes is 16, total output size in bytes is 32" in report


def test_events_of_nodes_are_kept_where_asked_for():
    gm = fx.symbolic_trace(model)
    first, second, *_ = gm.graph.nodes
    tracker = splitting.NodeEventTracker(1, "")
    tracker.add(first, "seen")
    tracker.add(second, "after", first)
    lines: list[str] = []
    tracker.print_node("sin", recursive=True, writer=lines.append)
    assert lines == ["sin: after x", "| x: seen None"]
    assert tracker.to_dict() == {"x": ["x: seen None"], "sin": ["sin: after x"]}
