"""Which op of TorchScript a function is: `aten::add` for `torch.add`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

_registered: dict[int, tuple[Callable[..., Any], str]] = {}

# The functions of nn.functional that are ops themselves; the others are made of ops.
_NETWORK = ("adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear channel_shuffle conv1d "
            "conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d "
            "cosine_similarity gelu hardshrink linear logsigmoid native_channel_shuffle one_hot "
            "pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu softplus softshrink "
            "scaled_dot_product_attention").split()
_RENAMED = {"logsigmoid": "log_sigmoid"}


def _op_name(fn: Callable[..., Any]) -> str | None:
    """The name of the op that a public function is: it is looked up by its own name."""
    import flambeau
    from flambeau import functional
    from flambeau.nn import functional as network
    from flambeau.nn.modules import utils
    name = getattr(fn, "__name__", "")
    for place, prefix, left_out in (
            (flambeau.linalg, "linalg_", ()), (flambeau.fft, "fft_", ()),
            (flambeau.special, "special_", ()), (flambeau, "", functional.__all__),
            (flambeau.autograd, "", ())):
        own = name.removeprefix(prefix)
        if own and own not in left_out and getattr(place, own, None) is fn and (
                place is not flambeau.autograd or own in ("grad", "backward")):
            return f"aten::{prefix}{own}"
    if name in _NETWORK and getattr(network, name) is fn:
        return f"aten::{_RENAMED.get(name, name)}"
    return f"aten::{name}" if fn in (utils._single, utils._pair, utils._triple,
                                      utils._quadruple) else None


def _register_builtin(fn: Callable[..., Any], op: str) -> None:
    """Say that a function is the op of this name."""
    _registered[id(fn)] = fn, op


def _find_builtin(fn: Callable[..., Any]) -> str | None:
    """The name of the op that a function is.

    >>> _find_builtin(flambeau.add)
    'aten::add'
    """
    if id(fn) in _registered:
        return _registered[id(fn)][1]
    return None if isinstance(fn, type) else _op_name(fn)
