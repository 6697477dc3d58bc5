"""Attention among the elements of each part of a nested tensor: no part sees another."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.nested.tensors import NestedTensor, join
from flambeau.nn.functional import pad


def attend(func: Any, query: NestedTensor, key: NestedTensor, value: NestedTensor, *args: Any,
           **kwargs: Any) -> tuple[NestedTensor, Tensor | None]:
    """`_native_multi_head_attention`: the result is nested, the weights are padded with zeros."""
    results, weights = [], []
    for parts in zip(*[t.unbind() for t in (query, key, value)]):
        result, weight = func(*[p.unsqueeze(0) for p in parts], *args, **kwargs)
        results.append(result.squeeze(0))
        weights.append(weight)
    return join(results, query.layout), None if weights[0] is None else _padded(weights)


def encode(func: Any, src: NestedTensor, *args: Any, **kwargs: Any) -> NestedTensor:
    """`_transformer_encoder_layer_fwd`, part by part."""
    return join([func(part.unsqueeze(0), *args, **kwargs).squeeze(0) for part in src.unbind()],
                src.layout)


def _padded(weights: list[Tensor]) -> Tensor:
    longest = max(w.size(-1) for w in weights)
    return flambeau.cat([pad(w, [0, longest - w.size(-1), 0, longest - w.size(-2)])
                         for w in weights])


RULES: dict[str, Any] = {"native_multi_head_attention": attend,
                         "transformer_encoder_layer_fwd": encode}
