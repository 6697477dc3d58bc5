"""What a backend needs to know of the modules that a graph calls."""
from __future__ import annotations

import pytest

from flambeau import fx, nn
from flambeau.fx.passes.param_fetch import extract_attrs_for_lowering, lift_lowering_attrs_to_nodes


def test_nodes_get_the_attributes_of_their_modules_also_inside_graphs():
    inner = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 3, bias=False), nn.ReLU(inplace=True)))
    outer = fx.symbolic_trace(nn.Sequential(inner, nn.MaxPool2d(2)))
    lift_lowering_attrs_to_nodes(outer)
    found = {node.attrs_for_lowering["name"].rpartition(".")[2]: node.attrs_for_lowering
             for node in outer.graph.nodes if hasattr(node, "attrs_for_lowering")}
    assert found["MaxPool2d"]["kernel_size"] == 2 and found["ReLU"]["inplace"] is True
    assert found["Linear"]["weight"] is inner.get_submodule("0").weight
    assert found["Linear"]["bias"] is None


def test_unknown_and_newer_modules_are_refused(monkeypatch):
    with pytest.raises(RuntimeError, match="Dropout is not in the module_fetch_book"):
        extract_attrs_for_lowering(nn.Dropout())
    monkeypatch.setattr(nn.Linear, "_version", 2)
    with pytest.raises(RuntimeError, match=r"version 1 try to fetch .*Linear version 2"):
        extract_attrs_for_lowering(nn.Linear(1, 1))
