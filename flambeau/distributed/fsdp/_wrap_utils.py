"""Wrapping of the modules that a policy chooses."""
from __future__ import annotations

from flambeau import nn


def _get_post_order_named_modules(root_module: nn.Module) -> list[tuple[str, nn.Module]]:
    """The modules with their names, children first."""
    seen, found = {root_module}, []

    def walk(name: str, module: nn.Module) -> None:
        for child_name, child in module.named_children():
            if child not in seen:
                seen.add(child)
                walk(f"{name}.{child_name}" if name else child_name, child)
        found.append((name, module))
    walk("", root_module)
    return found
