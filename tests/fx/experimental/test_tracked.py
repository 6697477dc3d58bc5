"""Which node gave a value."""
import gc

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.fx.experimental import _tracked, proxy_tensor
from flambeau.fx.experimental.proxy_tensor import (
    PythonKeyTracer,
    get_proxy_slot,
    set_proxy_slot,
    track_tensor_tree,
)


@pytest.fixture
def tracer():
    made = PythonKeyTracer()
    made.graph, made.root = fx.Graph(), torch.nn.Module()
    return made


def test_a_call_is_made_when_it_is_asked_for(tracer):
    calls = []

    def count(a, b=0):
        calls.append((a, b))
        return a + b
    thunk = _tracked.thunkify(tracer, count, 1, b=2)
    assert not calls and thunk.force() == 3 == thunk.force() and calls == [(1, 2)]


def test_tensors_are_known_while_they_live(tracer):
    x, y = torch.ones(2), torch.ones(2)
    set_proxy_slot(x, tracer, "x")
    assert get_proxy_slot(x, tracer) == "x"
    assert get_proxy_slot(x, tracer, None, lambda found: found * 2) == "xx"
    assert get_proxy_slot(y, tracer, "none") == "none"
    with pytest.raises((RuntimeError, KeyError), match="is not tracked with proxy"):
        get_proxy_slot(y, tracer)
    assert len(tracer.tensor_tracker) == 1
    del x
    gc.collect()
    assert len(tracer.tensor_tracker) == 0


def test_parts_of_results_are_items(tracer):
    a, b = torch.ones(2), torch.ones(3)
    whole = fx.Proxy(tracer.graph.placeholder("x"), tracer)
    assert track_tensor_tree((a, [b]), whole, constant=None, tracer=tracer) == (a, [b])
    slot = get_proxy_slot(b, tracer)
    assert slot.constant is None and [n.name for n in tracer.graph.nodes] == [
        "x", "getitem", "getitem_1", "getitem_2"]
    assert slot.proxy.node.meta["val"].shape == (3,)
    assert slot.proxy.node.meta["tensor_meta"].dtype == torch.float32


def test_what_nodes_keep_of_values():
    kept = proxy_tensor.extract_val([torch.ones(2, 3).t(), 4, None])
    assert isinstance(kept, list) and kept[0].shape == (3, 2) and kept[0].stride() == (1, 3)
    assert type(kept[0]).__name__ == "FakeTensor" and kept[1:] == [4, None]
