"""Which way to compute attention PyTorch would take."""
from __future__ import annotations

import flambeau
from flambeau.core.tensor import Tensor
from flambeau.dispatch.declaration import op


@op("_fused_sdp_choice(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> int",
    out=False, method=False)
def fused_sdp_choice(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None,
                     dropout_p: float, is_causal: bool, scale: float | None, enable_gqa: bool
                     ) -> int:
    """Which `SDPBackend` PyTorch's CPU would compute this attention with, of those that are
    allowed: 1, in blocks, or 0, by its formula.

    >>> import flambeau
    >>> q = flambeau.zeros(1, 1, 2, 4)
    >>> flambeau._fused_sdp_choice(q, q, q), flambeau._fused_sdp_choice(q, q, q, dropout_p=0.1)
    (1, 0)
    """
    cuda = flambeau.backends.cuda
    blocks, formula = cuda.flash_sdp_enabled(), cuda.math_sdp_enabled()
    if not blocks and not formula:
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found. This is "
                           "likely due to turning off both the math kernel and the fused kernels.")
    if blocks and not dropout_p and _goes_in_blocks(
            query, key, value, attn_mask, enable_gqa):
        return 1
    if formula:
        return 0
    raise RuntimeError("No available kernel.  Aborting execution.")


def _goes_in_blocks(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, grouped: bool
                    ) -> bool:
    tensors, shapes = (query, key, value), [t.shape for t in (query, key, value)]
    if any(t.ndim != 4 or t.dtype is not query.dtype or t.device.type != "cpu" for t in tensors) \
            or not query.is_floating_point():
        return False
    q, k, v = shapes
    heads = k[1] == v[1] and (q[1] == k[1] or (grouped and k[1] and q[1] % k[1] == 0))
    if not heads or len({s[0] for s in shapes}) > 1 or len({s[3] for s in shapes}) > 1:
        return False
    if mask is not None:
        rows, columns = mask.shape[-2], mask.shape[-1]
        if mask.requires_grad or rows not in (1, q[2]) or columns not in (1, k[2]) or not (
                mask.ndim == 2 or (mask.ndim == 4 and mask.shape[0] in (1, q[0])
                                   and mask.shape[1] in (1, q[1]))):
            return False
    return all(s[2] and t.stride(-1) == 1 for s, t in zip(shapes, tensors))
