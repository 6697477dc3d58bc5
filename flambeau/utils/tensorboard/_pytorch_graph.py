"""The graph of a model for TensorBoard. Not offered: it is made of a graph of TorchScript."""
from __future__ import annotations

from typing import Any


def graph(model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> Any:
    """NotImplementedError: flambeau has no graphs of TorchScript."""
    raise NotImplementedError("torch.utils.tensorboard._pytorch_graph.graph: flambeau has no "
                              "graphs of TorchScript; torchview and torchviz draw models")


__all__ = ["graph"]
