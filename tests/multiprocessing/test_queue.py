"""Queues that know tensors."""
import multiprocessing

import pytest

import flambeau as torch
from flambeau.multiprocessing.queue import ConnectionWrapper, Queue, SimpleQueue


@pytest.mark.parametrize("kind", [Queue, SimpleQueue])
def test_tensors_pass_through(kind):
    queue = kind(ctx=multiprocessing.get_context())
    x = torch.arange(3.0)
    queue.put([x, "text"])
    found, text = queue.get()
    assert torch.equal(found, x) and text == "text" and found.is_shared()
    if kind is Queue:
        queue.close()
        queue.join_thread()


def test_connections():
    ends = [ConnectionWrapper(end) for end in multiprocessing.Pipe()]
    ends[0].send({"x": torch.ones(2)})
    assert ends[1].poll(5) and ends[1].recv()["x"].tolist() == [1, 1]
    with pytest.raises(AttributeError, match="has no attribute 'conn'"):
        ConnectionWrapper.__new__(ConnectionWrapper).poll()
    for end in ends:
        end.close()
