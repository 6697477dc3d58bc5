"""What programs say to the tracer is noted, as PyTorch notes it."""
import pytest

import flambeau as torch
from flambeau import _dynamo
from flambeau._dynamo import decorators


def test_sizes_that_may_differ():
    x = torch.ones(2, 3, 4)
    decorators.mark_dynamic(x, 0)
    decorators.mark_dynamic(x, [1, 2])
    assert x._dynamo_dynamic_indices == {0, 1, 2}
    decorators.maybe_mark_dynamic(x, 1)
    assert x._dynamo_weak_dynamic_indices == {1}
    decorators.mark_unbacked(x, (0, 2))
    assert x._dynamo_unbacked_indices == {0, 2}


def test_sizes_that_never_differ():
    x = torch.ones(2, 3)
    decorators.mark_static(x)
    assert x._dynamo_static_indices == {0, 1}
    y = torch.ones(2, 3)
    decorators.mark_static(y, 1)
    assert y._dynamo_static_indices == {1}
    with pytest.raises(TypeError):
        decorators.mark_static(3)


def test_a_tensor_that_stays_where_it_is():
    x = torch.ones(2)
    decorators.mark_static_address(x)
    assert x._dynamo_static_input_type == "unguarded"
    decorators.mark_static_address(x, guard=True)
    assert x._dynamo_static_input_type == "guarded"
    with pytest.raises(TypeError, match="mark_static_address expects a tensor but rec"):
        decorators.mark_static_address([x])


def test_functions_come_back():
    def f(x):
        return x * 2
    assert decorators.run(f)(3) == 6
    assert decorators.forbid_in_graph([f]) == [f] and f._dynamo_forbidden
    assert decorators.skip(f)(4) == 8 and decorators.nonstrict_trace(f)(1) == 2
    with pytest.raises(AssertionError, match="applies only to callables"):
        decorators.forbid_in_graph(3)


def test_marks_in_a_program_do_nothing_when_it_runs():
    def f(x):
        _dynamo.graph_break()
        _dynamo.graph_break(msg="here")
        return x + 1
    assert f(1) == 2


def test_whether_graphs_must_be_whole():
    @decorators.error_on_graph_break(False)
    def f(x):
        with decorators.error_on_graph_break(True):
            return x + 1
    assert f(1) == 2
    with pytest.raises(ZeroDivisionError), decorators.error_on_graph_break(True):
        raise ZeroDivisionError


def test_switches_for_a_while():
    with decorators.patch_dynamo_config(capture_scalar_outputs=True):
        assert _dynamo.config.capture_scalar_outputs
        with decorators.patch_dynamo_config({"verbose": True}):
            assert _dynamo.config.verbose
    assert not _dynamo.config.capture_scalar_outputs and not _dynamo.config.verbose
    with pytest.raises(ValueError, match="does not support patching config suppress_errors"):
        decorators.patch_dynamo_config(suppress_errors=True)
