"""Garbage in cycles, seen and drawn."""

import gc

import flambeau as torch


def test_garbage_is_seen_and_drawn():
    from flambeau.utils.viz import _cycles
    found = []
    stop = _cycles.observe_garbage(found.extend)
    gc.collect()
    found.clear()
    cycle = [torch.ones(2)]
    cycle.append(cycle)
    del cycle
    gc.collect()
    stop()
    assert {"list", "Tensor"} <= {type(obj).__name__ for obj in found}
    cycle = next(obj for obj in found if type(obj) is list
                 and any(type(item) is torch.Tensor for item in obj))
    nodes = _cycles.create_graph([cycle, cycle[0]], filter=lambda o: isinstance(o, torch.Tensor))
    assert [node.root for node in nodes] == [False, True]
    assert ("[0]", 1) in nodes[0].referrents
    assert '0 -> 1 [label = "[0]"]' in _cycles.to_dot(nodes)
    assert "digraph" in _cycles.to_html(nodes)
    cycle.clear()


def test_references_are_named():
    from flambeau.utils.viz import _cycles
    first, second = torch.ones(1), torch.ones(2)
    names = _cycles.annotated_references({"key": first})
    assert names[id(first)] == ["['key']"]
    assert _cycles.annotated_references([first, second, first])[id(first)] == ["[0]", "[2]"]

    def function():
        return second
    cell = function.__closure__[0]
    assert "cell_contents" in _cycles.annotated_references(cell)[id(second)]
    assert "__closure__" in _cycles.annotated_references(function)[id(function.__closure__)]
