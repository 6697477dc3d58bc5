"""What a thread keeps, how C++ warns, and what a backward pass says of itself."""
import os

import pytest

import flambeau as torch
from flambeau import _C


def test_stashed_objects_are_there_in_backward():
    kept = {}
    _C._stash_obj_in_tls("kept", kept)

    class Noting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            _C._get_obj_in_tls("kept")["retains"] = (
                _C._autograd._get_current_graph_task_keep_graph())
            return grad

    y = Noting.apply(torch.ones(2, requires_grad=True)).sum()
    y.backward(retain_graph=True)
    assert kept == {"retains": True}
    y.backward()
    assert kept == {"retains": False}
    assert not _C._is_key_in_tls("nothing")
    with pytest.raises(RuntimeError, match="nothing has been stashed"):
        _C._get_obj_in_tls("nothing")


def test_warnings():
    with pytest.warns(UserWarning, match="Test message for TORCH_WARN"):
        _C._warn()
    with pytest.warns(DeprecationWarning, match="Test message for TORCH_WARN_DEPRECATION"):
        _C._warn_deprecation()


def test_saved_tensor_hooks_can_be_asked_for():
    assert _C._autograd._saved_tensors_hooks_is_enabled()
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        assert not _C._autograd._saved_tensors_hooks_is_enabled()


def test_multithreading_can_be_asked_for():
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch.autograd.is_multithreading_enabled()
    assert torch.autograd.is_multithreading_enabled()


def test_numbers_of_nodes_say_the_order():
    x, order = torch.ones(2, requires_grad=True), []
    a, b = x * 2, x * 3
    (a + b).grad_fn._set_sequence_nr(10 ** 9)
    for number, node, name in ((10 ** 8, a.grad_fn, "a"), (10 ** 8 - 1, b.grad_fn, "b")):
        node._set_sequence_nr(number)
        assert node._sequence_nr() == number
        node.register_hook(lambda *_, name=name: order.append(name))
    (a + b).sum().backward()
    assert order == ["a", "b"]


def test_directions_of_several_tensors():
    rows = torch.autograd.functional._construct_standard_basis_for(
        (torch.zeros(2), torch.zeros(())), (2, 1))
    assert torch.equal(torch.cat(rows, 1), torch.eye(3))
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        torch.autograd.Variable([1.0])


def test_workers_watch_their_parent():
    from flambeau.utils.data._utils import signal_handling, worker
    assert worker.ManagerWatchdog().is_alive()
    assert "worker_id=2" in repr(worker._IterableDatasetStopIteration(2))
    signal_handling._set_worker_pids(1, (os.getpid(),))
    with pytest.raises(ValueError, match="should be called only once"):
        signal_handling._set_worker_pids(1, ())
    signal_handling._remove_worker_pids(1)
    with pytest.raises(ValueError, match="Cannot find worker information"):
        signal_handling._remove_worker_pids(1)
