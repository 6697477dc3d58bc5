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


def _over_pairs(function: Any, buffers: Any, first: tuple[int | None, ...]) -> Any:
    """A function of batch, head, row and column numbers, for all of them at once."""
    found = lambda *values: function(*values, *buffers)
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None),
                 (0, None, None, None)):
        found = flambeau.vmap(found, in_dims=(*first, *dims))
    return found


@flex_attention.py_impl(DispatchKey.CompositeImplicitAutograd)
def math_attention(query: Tensor, key: Tensor, value: Tensor, score_mod: Any, block_mask: Any,
                   scale: float, kernel_options: Any, score_mod_other_buffers: Any = (),
                   mask_mod_other_buffers: Any = ()) -> tuple[Tensor, Tensor, Tensor]:
    """The attention by its formula."""
    groups = query.shape[1] // key.shape[1]
    key, value = (t.repeat_interleave(groups, 1) if groups > 1 else t for t in (key, value))
    key, value = (t.expand(query.shape[0], *t.shape[1:]) for t in (key, value))
    scores = (query @ key.transpose(-2, -1)) * scale
    b, h, m, n = (flambeau.arange(size) for size in scores.shape)
    if score_mod is not None:
        def modified(score: Any, *place: Any) -> Any:
            return score_mod(score, *place, *score_mod_other_buffers)
        run: Any = modified
        for dims in ((0, None, None, None, 0), (0, None, None, 0, None), (0, None, 0, None, None),
                     (0, 0, None, None, None)):
            run = flambeau.vmap(run, in_dims=dims)
        scores = run(scores, b, h, m, n)
    mask_mod = block_mask[-1] if block_mask else None
    if callable(mask_mod):
        kept = _over_pairs(mask_mod, mask_mod_other_buffers, ())(b, h, m, n)
        scores = scores.masked_fill(~kept, -math.inf)
    largest = scores.amax(-1)
    sums = scores.logsumexp(-1)
    weights = flambeau.where((sums == -math.inf).unsqueeze(-1), 0.0, scores.softmax(-1))
    return weights.to(query.dtype) @ value, sums / math.log(2), largest / math.log(2)


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


__all__ = ["FlexAttentionBackwardHOP", "FlexAttentionHOP", "flex_attention",
           "flex_attention_backward", "math_attention"]
