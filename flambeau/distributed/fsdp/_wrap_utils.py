"""Wrapping of the modules that a policy chooses."""
from __future__ import annotations

from flambeau import nn


def _get_post_order_named_modules(root_module: nn.Module) -> list[tuple[str, nn.Module]]:
    """The modules with their names, children first."""
    seen, waiting, found = {root_module}, [("", root_module)], []
    while waiting:                                  # from the root on, and the last ones first
        name, module = waiting.pop()
        found.append((name, module))
        for child_name, child in module.named_children():
            if child not in seen:
                seen.add(child)
                waiting.append((f"{name}.{child_name}" if name else child_name, child))
    return found[::-1]
