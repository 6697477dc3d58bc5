"""The parts of a trace that can go back to an earlier state."""
import pytest

from flambeau._guards import GlobalContext, GuardsContext, ModuleContext


def test_modules():
    context = ModuleContext()
    context.nn_modules["a"] = 1
    before = context.copy_graphstate()
    context.nn_modules["b"] = 2
    after = context.copy_graphstate()
    assert after.diff(before) == {"b"} and before.diff(after) is None is after.diff(after)
    context.restore_graphstate(before)
    assert context.nn_modules == {"a": 1}


def test_global_settings_are_set_again():
    seen = []
    context = GlobalContext()
    names = "autocast_cpu_enabled autocast_cache_enabled autocast_cpu_dtype " \
            "autocast_gpu_dtype autocast_enabled"
    context.global_state.update({name: (lambda value: None, None) for name in names.split()})
    context.global_state["grad_enabled"] = (seen.append, True)
    state = context.copy_graphstate()
    other = GlobalContext().copy_graphstate()
    assert state.diff(other) == {*names.split(), "grad_enabled"} and other.diff(state) is None
    context.restore_graphstate(state)
    assert seen == [True]


@pytest.mark.parametrize("count", [0, 3])
def test_guards(count):
    context = GuardsContext()
    before = context.copy_graphstate()
    assert len(context.dynamo_guards) == 0 and before.diff(before) is None
    context.restore_graphstate(before)
    assert context.dynamo_guards.inner == set()
