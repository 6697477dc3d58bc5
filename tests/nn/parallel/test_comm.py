"""Tensors moved between GPUs, of which there are none."""
import pytest

import flambeau
import flambeau.cuda.comm
from flambeau.nn.parallel import _functions, comm

X = flambeau.ones(2, requires_grad=True)


@pytest.mark.parametrize("name, call", [
    ("Broadcast", lambda: comm.broadcast(X, [0])), ("Scatter", lambda: comm.scatter(X, [0])),
    ("Gather", lambda: comm.gather([X])), ("reduce_add", lambda: comm.reduce_add([X])),
    ("Broadcast", lambda: _functions.Broadcast.apply([0], X)),
    ("Scatter", lambda: _functions.Scatter.apply([0], None, 0, X)),
    ("Gather", lambda: _functions.Gather.apply(0, 0, X)),
    ("reduce_add", lambda: _functions.ReduceAddCoalesced.apply(0, 1, X))])
def test_what_is_in_main_memory_is_refused(name, call):
    with pytest.raises(AssertionError, match=name):
        call()


def test_copies_need_no_stream():
    assert _functions._get_stream(flambeau.device("cpu")) is None
    assert flambeau.cuda.comm.broadcast is comm.broadcast
