"""A device of some process."""
from __future__ import annotations

import pickle

import pytest

import flambeau as torch
from flambeau.distributed import _remote_device


@pytest.mark.parametrize(("text", "worker", "rank", "device"), [
    ("cpu", None, None, "cpu"), ("cuda:1", None, None, "cuda:1"), ("w/cpu", "w", None, "cpu"),
    ("w", "w", None, "cpu"), ("rank:1/cuda:0", None, 1, "cuda:0"), ("rank:0", None, 0, "cpu"),
    ("w/cuda", "w", None, "cuda"), ("meta", None, None, "meta")])
def test_places(text, worker, rank, device):
    found = _remote_device(text)
    assert (found.worker_name(), found.rank(), found.device()) == (
        worker, rank, torch.device(device))
    owner = worker or (f"rank:{rank}" if rank is not None else None)
    assert repr(found) == (f"{owner}/{device}" if owner else device)
    assert found == _remote_device(text) and hash(found) == hash(_remote_device(text))
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize("text", ["", "/", "/cpu", "a/b/c", "rank:x/cpu", "rank:", "rank:-1"])
def test_no_places(text):
    with pytest.raises(ValueError, match=f"Could not parse remote_device: {text}"):
        _remote_device(text)


def test_devices():
    found = _remote_device(torch.device("cpu"))
    assert found.device() == torch.device("cpu") and found.worker_name() is None
    assert found == _remote_device("cpu") != _remote_device("w/cpu") and found != "cpu"
    with pytest.raises(TypeError, match="Invalid type for remote_device: <class 'int'>"):
        _remote_device(3)
    with pytest.raises(RuntimeError, match="device"):
        _remote_device("w/no device")
    with pytest.raises(RuntimeError, match="Device string must not be empty"):
        _remote_device("w/")
