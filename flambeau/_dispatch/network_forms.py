"""How calls of `nn.functional` and of what is below it are shown, and their gradients."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau._dispatch.forms import becomes, defines, shows
from flambeau.core.tensor import Tensor, tensor_types
from flambeau.ops.loss import cross_entropy
from flambeau.ops.nn import attention


def gradient(function: Callable[..., Any], inputs: Any, grad: Any, *rest: Any, **options: Any
             ) -> Any:
    """The gradients of `function(*inputs, *rest)` by the inputs that are tensors, given that of
    its (first) result."""
    with flambeau.enable_grad():
        leaves = [None if t is None else t.detach().requires_grad_() for t in inputs]
        result = function(*leaves, *rest, **options)
        result = result if type(result) in tensor_types else result[0]
    found = iter(flambeau.autograd.grad(result, [v for v in leaves if v is not None], grad,
                                        allow_unused=True))
    return tuple([None if v is None else next(found) for v in leaves])


def backward(schema: str, function: Callable[..., Any], count: int = 1) -> Any:
    """Declare `<op>_backward(grad, inputs..., rest...)`, the gradients of `function` by its first
    `count` arguments."""
    def run(grad: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = gradient(function, args[:count], grad, *args[count:], **kwargs)
        return found[0] if count == 1 else found
    return defines(schema, run)


# ---- normalisation -------------------------------------------------------------------------------


def _rms_norm(input: Tensor, weight: Any, dims: int, eps: float) -> Tensor:
    scale = flambeau.rsqrt((input.pow(2).mean(tuple(range(-dims, 0)), True)).add_(eps))
    scaled = input * scale
    return scaled if weight is None else scaled * weight


becomes("_rms_norm", _rms_norm)

# ---- convolution, pooling, resampling ------------------------------------------------------------


# ---- losses, attention ---------------------------------------------------------------------------



def _cross_entropy(input: Tensor, target: Tensor, weight: Any, reduction: int, ignore_index: int,
                   smoothing: float) -> Tensor:
    """As PyTorch computes it: log-probabilities, then the loss for classes."""
    return cross_entropy._smoothed(flambeau.log_softmax(input, 1), target, weight, reduction,
                                   ignore_index, smoothing)


becomes("_cross_entropy", _cross_entropy)
_ATTENTION = ("Tensor query, Tensor key, Tensor value, {}float dropout_p{}, bool is_causal{}, *, "
              "Tensor? attn_mask=None, float? scale=None")


def _attend(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0,
            is_causal: bool = False, *, attn_mask: Any = None, scale: Any = None) -> Any:
    result = attention.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p,
                                                    is_causal, scale=scale)
    return result, _scores(query, key, is_causal, attn_mask, scale).logsumexp(-1)


def _scores(query: Tensor, key: Tensor, is_causal: bool, attn_mask: Any, scale: Any) -> Tensor:
    """What is exponentiated, in single precision at least."""
    if query.dtype in (flambeau.float16, flambeau.bfloat16):
        query, key = query.float(), key.float()
    scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
    mask = attention.additive_mask(attn_mask, query, key, is_causal)
    return scores if mask is None else scores + mask


def _attend_backward(grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, out: Tensor,
                     logsumexp: Tensor, dropout_p: float, is_causal: bool, *,
                     attn_mask: Any = None, scale: Any = None) -> tuple[Tensor, ...]:
    """From the result and the logarithms: they may be those of more keys than are given."""
    weights = (_scores(query, key, is_causal, attn_mask, scale) - logsumexp.unsqueeze(-1)).exp()
    grad, wide = grad_out.to(weights.dtype), [t.to(weights.dtype) for t in (query, key, value)]
    change = grad @ wide[2].transpose(-2, -1) - (grad * out).sum(-1, keepdim=True)
    change = weights * change * (query.shape[-1] ** -0.5 if scale is None else scale)
    return ((change @ wide[1]).to(query.dtype), (change.transpose(-2, -1) @ wide[0]).to(key.dtype),
            (weights.transpose(-2, -1) @ grad).to(value.dtype))


_attention_back = defines(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, "
    + _ATTENTION.format("Tensor out, Tensor logsumexp, ", "", "")
    + ") -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)", _attend_backward)
shows("_attend", "_scaled_dot_product_flash_attention_for_cpu("
      + _ATTENTION.format("", "=0.", "=False") + ") -> (Tensor output, Tensor logsumexp)",
      lambda query, key, value, mask, is_causal, scale: (
          (query, key, value, 0.0, is_causal, mask, scale)
          if attention._fits(query, key, value, mask) else None), run=_attend,
      grads=lambda grad, query, key, value, is_causal, attn_mask, scale, result, result1:
      _attention_back(grad, query, key, value, result, result1, 0.0, is_causal,
                      **{k: v for k, v in (("attn_mask", attn_mask), ("scale", scale))
                         if v is not None}))

