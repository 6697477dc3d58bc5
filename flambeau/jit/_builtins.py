"""Which op of TorchScript a function is: `aten::add` for `torch.add`."""
from __future__ import annotations

import functools
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


@functools.cache
def _get_builtin_table() -> dict[int, str]:
    """The name of each op, by the identity of its function."""
    import flambeau
    from flambeau import functional
    from flambeau.core.op import public
    from flambeau.nn import functional as network
    from flambeau.nn.modules import utils
    flambeau.ops.load()
    table: dict[int, str] = {}
    for n in ("single", "pair", "triple", "quadruple"):
        table[id(getattr(utils, f"_{n}"))] = f"aten::_{n}"
    for space, prefix in (("linalg", "linalg_"), ("fft", "fft_"), ("special", "special_"),
                          ("torch", "")):
        for name, function in public.get(space, {}).items():
            if space != "torch" or name not in functional.__all__:
                table[id(function)] = f"aten::{prefix}{name}"
    for name in _NETWORK:
        table[id(getattr(network, name))] = f"aten::{_RENAMED.get(name, name)}"
    table |= {id(flambeau.autograd.grad): "aten::grad",
              id(flambeau.autograd.backward): "aten::backward"}
    return table


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
    return _get_builtin_table().get(id(fn))
