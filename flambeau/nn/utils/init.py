"""Making a module without drawing its weights."""

from __future__ import annotations

import inspect

import flambeau


def skip_init(module_cls, *args, **kwargs):
    """Make a module whose parameters are uninitialized, for weights that will be loaded anyway.

    Example:
        >>> nn.utils.skip_init(nn.Linear, 20, 30)
        Linear(in_features=20, out_features=30, bias=True)
    """
    if not issubclass(module_cls, flambeau.nn.Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final_device = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=final_device)
