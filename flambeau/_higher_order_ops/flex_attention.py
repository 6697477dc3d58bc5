"""The ops below `nn.attention.flex_attention`."""
from __future__ import annotations

import math
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._library.higher_order import HigherOrderOperator
from flambeau.dispatch.aten.keys import DispatchKey


class FlexAttentionHOP(HigherOrderOperator):
    """Attention whose scores a function changes; `block_mask` ends with the mask's function.
    Gives the result, the logarithms of the sums, and the largest scores."""

    def __init__(self) -> None:
        super().__init__("flex_attention", cacheable=True)

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, score_mod: Any, block_mask: Any,
                 scale: float, kernel_options: dict[str, Any], score_mod_other_buffers: Any = (),
                 mask_mod_other_buffers: Any = ()) -> Any:
        return super().__call__(query, key, value, score_mod, block_mask, scale, kernel_options,
                                score_mod_other_buffers, mask_mod_other_buffers)


class FlexAttentionBackwardHOP(HigherOrderOperator):
    """The gradients of `flex_attention` by query, key and value, and by the buffers of `score_mod`,
    which have none."""

    def __init__(self) -> None:
        super().__init__("flex_attention_backward")

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor,
                 grad_out: Tensor | None, grad_logsumexp: Tensor | None, fw_graph: Any,
                 joint_graph: Any, block_mask: Any, scale: float, kernel_options: dict[str, Any],
                 score_mod_other_buffers: Any = (), mask_mod_other_buffers: Any = ()) -> Any:
        return super().__call__(query, key, value, out, logsumexp, grad_out, grad_logsumexp,
                                fw_graph, joint_graph, block_mask, scale, kernel_options,
                                score_mod_other_buffers, mask_mod_other_buffers)


flex_attention = FlexAttentionHOP()
flex_attention_backward = FlexAttentionBackwardHOP()


def over_all_pairs(function: Any, first: tuple[int | None, ...] = ()) -> Any:
    """`function(*first, b, h, q, kv)` over all batches, heads, queries and keys."""
    for at in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None),
               (0, None, None, None)):
        function = flambeau.vmap(function, (*first, *at))
    return function


def attend(query: Tensor, key: Tensor, value: Tensor, score_mod: Any, mask_mod: Any,
           scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """The attention by its formula: the result, the logarithms of the sums, and the scores. A query
    that attends to nothing gives 0."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    working = flambeau.float64 if query.dtype is flambeau.float64 else flambeau.float32
    scores = (query @ key.transpose(-2, -1)).to(working) * scale
    index = [flambeau.arange(n, device=query.device) for n in scores.shape]
    if score_mod is not None:
        scores = over_all_pairs(score_mod, (0,))(scores, *index).to(working)
    if mask_mod is not None:
        scores = flambeau.where(over_all_pairs(mask_mod)(*index), scores, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - flambeau.where(lse == -math.inf, 0.0, lse).unsqueeze(-1)).exp()
    return weights.to(query.dtype) @ value, lse, scores


@flex_attention.py_impl(DispatchKey.CompositeImplicitAutograd)
def math_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Any, block_mask: Any,
                   scale: float, kernel_options: Any, score_mod_other_buffers: Any = (),
                   mask_mod_other_buffers: Any = ()) -> tuple[Tensor, Tensor, Tensor]:
    """The attention by its formula, with logarithms to the base 2."""
    def with_buffers(function: Any, buffers: Any) -> Any:
        return (lambda *values: function(*values, *buffers)) if callable(function) else None
    found, lse, scores = attend(
        query, key, value, with_buffers(score_mod, score_mod_other_buffers),
        with_buffers(block_mask[-1] if block_mask else None, mask_mod_other_buffers), scale)
    return found, lse / math.log(2), scores.amax(-1) / math.log(2)


@flex_attention_backward.py_impl(DispatchKey.CompositeImplicitAutograd)
def _backward(query: Tensor, key: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor,
              grad_out: Tensor | None, grad_logsumexp: Tensor | None, fw_graph: Any,
              joint_graph: Any, block_mask: Any, scale: float, kernel_options: Any,
              score_mod_other_buffers: Any = (), mask_mod_other_buffers: Any = ()) -> Any:
    with flambeau.enable_grad():
        inputs = [t.detach().requires_grad_() for t in (query, key, value)]
        found, sums, _ = math_attention(*inputs, fw_graph, block_mask, scale, kernel_options,
                                        score_mod_other_buffers, mask_mod_other_buffers)
    pairs = [(y, g) for y, g in ((found, grad_out), (sums, grad_logsumexp)) if g is not None]
    grads = flambeau.autograd.grad([y for y, _ in pairs], inputs, [g for _, g in pairs])
    return (*grads, tuple(None for _ in score_mod_other_buffers))


__all__ = ["FlexAttentionBackwardHOP", "FlexAttentionHOP", "attend", "flex_attention",
           "flex_attention_backward", "math_attention", "over_all_pairs"]
