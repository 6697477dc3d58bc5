"""`freeze`: modules whose parameters count as constants."""
from __future__ import annotations

from typing import Any

from flambeau.jit._script import RecursiveScriptModule, ScriptModule


def freeze(mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
           ) -> RecursiveScriptModule:
    """A scripted module in eval mode whose parameters count as constants."""
    if not isinstance(mod, ScriptModule):
        raise RuntimeError("Freezing expects a ScriptModule as input. Please use torch.jit.script "
                           "or torch.jit.trace to script your 'nn.Module'.")
    if mod.training:
        raise RuntimeError("Freezing is currently only implemented for modules in eval mode. "
                           "Please call .eval() on your module before freezing.")
    return RecursiveScriptModule(mod._original, frozen=True)


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True,
                             preserved_methods: list[str] | None = None) -> None:
    """Has no effect: the module runs as Python."""


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """`freeze`: there is nothing else to optimise."""
    return mod if getattr(mod, "_frozen", False) else freeze(mod.eval())


__all__ = ["freeze", "optimize_for_inference", "run_frozen_optimizations"]
