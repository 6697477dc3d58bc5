"""The graphs of TorchScript: the names of their parts, for annotations and `isinstance`. There is
no compiler that would make one; `torch.fx` and `torch.export` give graphs."""
from __future__ import annotations

from typing import Any


def _part(name: str, what: str, refusal: str = "No constructor defined!") -> type:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if refusal:
            raise TypeError(f"torch._C.{name}: {refusal}")
        raise NotImplementedError(f"torch._C.{name}: flambeau has no graphs of TorchScript; "
                                  "torch.fx and torch.export give graphs")
    return type(name, (), {"__init__": __init__, "__module__": "torch", "__doc__": what})


Graph = _part("Graph", "A graph of TorchScript. Not offered.", "")
Node = _part("Node", "A call in a graph of TorchScript. None is made.")
Value = _part("Value", "What a node of a graph takes or gives. None is made.")
Block = _part("Block", "Part of a graph of TorchScript. None is made.")
Code = _part("Code", "A compiled graph. None is made.")
Use = _part("Use", "Where a value of a graph is used. None is made.")
Gradient = _part("Gradient", "A graph and that of its gradient. None is made.")
ScriptObject = _part("ScriptObject", "An object of a compiled class. None is made.")
ScriptMethod = _part("ScriptMethod", "A compiled method. None is made.")
ScriptClass = _part("ScriptClass", "A compiled class. None is made.")
IODescriptor = _part("IODescriptor", "How inputs are nested. None is made.")
TracingState = _part("TracingState", "What traces a graph. None is made.")
LiteScriptModule = _part("LiteScriptModule", "A module for mobile devices. None is made.")
ConcreteModuleType = _part("ConcreteModuleType", "The type of a compiled module. None is made.")
