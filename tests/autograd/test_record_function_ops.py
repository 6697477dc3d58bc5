"""Blocks that are begun and ended by ops."""

import pytest

import flambeau


def names(prof):
    return [e.name for e in prof.function_events]


def test_blocks_begun_and_ended_by_ops():
    ops = flambeau.ops.profiler
    with flambeau.profiler.profile() as profile:
        block = ops._record_function_enter_new("block", "arguments")
        ops._record_function_exit(block)
        ops._record_function_exit(ops._record_function_enter("by_tensor"))
        ops._record_function_exit._RecordFunction(
            ops._record_function_enter_new.default("by_overload"))
    names = {event.key for event in profile.key_averages()}
    assert {"block", "by_tensor", "by_overload"} <= names
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor'"):
        ops._record_function_exit(3)
