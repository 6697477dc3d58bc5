"""Modules in a row become one in the graph."""
from __future__ import annotations

from typing import Any

from flambeau import nn
from flambeau.ao.quantization.fuse_modules import fuse_known_modules
from flambeau.ao.quantization.fuser_method_mappings import _DEFAULT_OP_LIST_TO_FUSER_METHOD
from flambeau.ao.quantization.fx.kinds import RELUS, only_user, type_of
from flambeau.fx import GraphModule


def _row_from(node: Any, modules: dict[str, Any]) -> list[Any]:
    """The longest row of steps, each the only user of the one before, that can become one."""
    row, best = [node], []
    while len(row) < 3 and (user := only_user(row[-1])) is not None:
        if user.op not in ("call_module", "call_function", "call_method"):
            break
        row.append(user)
        if _types(row, modules) in _DEFAULT_OP_LIST_TO_FUSER_METHOD:
            best = list(row)
    return best


def _types(row: list[Any], modules: dict[str, Any]) -> tuple[Any, ...]:
    kinds = [type_of(node, modules) for node in row]
    return tuple(nn.ReLU if kind in RELUS else kind for kind in kinds)


def fuse(model: GraphModule, is_qat: bool, fuse_custom_config: Any = None,
         backend_config: Any = None) -> GraphModule:
    """The traced model with every row that can become one made one, in place of its first.
    `quantize_fx.fuse_fx` looks at the settings."""
    if backend_config is not None:
        raise NotImplementedError("torch.ao.quantization.fx.fuse: backend_config")
    modules = dict(model.named_modules())
    for node in list(model.graph.nodes):
        if node.op != "call_module" or node.graph is not model.graph:
            continue
        row = _row_from(node, modules)
        if not row:
            continue
        parts = [modules[n.target] if n.op == "call_module" else nn.ReLU().train(
            modules[node.target].training) for n in row]
        fused = fuse_known_modules(parts, is_qat)[0]
        path, _, name = node.target.rpartition(".")
        setattr(model.get_submodule(path), name, fused)
        modules[node.target] = fused
        row[-1].replace_all_uses_with(node)
        for later in reversed(row[1:]):
            model.graph.erase_node(later)
    return GraphModule(model, model.graph)


__all__ = ["fuse"]
