"""Signatures of public functions and classes as text, for their test and for what records them."""
from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

MODULES = """
torch torch.accelerator torch.amp torch.ao.nn.intrinsic torch.ao.nn.qat torch.ao.quantization
torch.autograd torch.autograd.forward_ad torch.autograd.function torch.autograd.functional
torch.autograd.gradcheck torch.autograd.graph torch.autograd.profiler torch.compiler torch.cpu
torch.cuda torch.distributions torch.distributions.kl torch.distributions.transforms
torch.export torch.fft torch.func torch.futures torch.fx torch.fx.node torch.fx.traceback torch.hub
torch.jit torch.library torch.linalg torch.masked torch.mps torch.mtia torch.multiprocessing
torch.nested torch.nn torch.nn.attention torch.nn.functional torch.nn.init torch.nn.parameter
torch.nn.utils torch.nn.utils.fusion torch.nn.utils.parametrizations torch.nn.utils.parametrize
torch.nn.utils.prune torch.nn.utils.rnn torch.nn.utils.stateless torch.optim
torch.optim.lr_scheduler torch.optim.swa_utils torch.overrides torch.package torch.profiler
torch.random torch.serialization torch.signal.windows torch.sparse torch.special torch.storage
torch.testing torch.utils.checkpoint torch.utils.data torch.utils.dlpack torch.utils.flop_counter
torch.utils.hooks torch.utils.mkldnn torch.xpu
""".split()
METHODS = ("forward", "step", "log_prob", "sample", "rsample", "expand", "cdf", "icdf", "entropy",
           "enumerate_support", "load_state_dict", "register_hook", "update_parameters")


def text_of(function: Any) -> str:
    """"(names=defaults)", or "" where Python knows none."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty, default=_Shown(p.default)) if p.default is not p.empty
             else p.replace(annotation=p.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


class _Shown:
    """A default as text: values as they are, objects by their names or types."""

    def __init__(self, value: Any):
        simple = (int, float, str, bool, tuple, type(None), complex)
        named = isinstance(value, type) or inspect.isroutine(value)
        self.text = repr(value) if type(value) in simple or type(value).__name__ == "Size" else \
            getattr(value, "__name__", "?") if named else type(value).__name__

    def __repr__(self) -> str:
        return self.text


def signatures(names: dict[str, Any], package: str = "torch") -> dict[str, dict[str, str]]:
    """Of each module the signatures of these names, where it has them."""
    found: dict[str, dict[str, str]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in MODULES:
            space = importlib.import_module(module.replace("torch", package, 1))
            found[module] = {name: text for name in names[module] if (text := _member(space, name))}
    return found


def _member(space: Any, path: str) -> str:
    value = space
    for name in path.split("."):
        try:
            value = getattr(value, name, None)
        except Exception:               # of a name that cannot be had here
            return ""
    return text_of(value) if callable(value) else ""
