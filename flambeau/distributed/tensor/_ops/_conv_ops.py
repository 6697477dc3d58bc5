"""Convolutions and windows: cuts of the batch; of channels, where each is on its own."""
from __future__ import annotations

from flambeau.distributed.tensor._op_schema import OpSchema, Strategy
from flambeau.distributed.tensor._ops.utils import R, along, register_rule
from flambeau.distributed.tensor.placement_types import Partial, Shard


@register_rule("convolution", "_convolution")
def _convolution(schema: OpSchema) -> list[Strategy]:
    """Cuts of the batch."""
    return [((Shard(0),), (Shard(0), *[R] * (len(schema.specs) - 1)))]


@register_rule("convolution_backward")
def _convolution_backward(schema: OpSchema) -> list[Strategy]:
    """Cuts of the batch: each process has a term of the weight's gradient."""
    mask = schema.args_schema[-1]
    outputs = (Shard(0) if mask[0] else None, Partial() if mask[1] else None,
               Partial() if mask[2] else None)
    return [(outputs, (Shard(0), Shard(0), R))]


def _outside_windows(schema: OpSchema) -> int:
    """The number of dimensions before those that windows go along."""
    return schema.specs[0].ndim - int(next(c for c in reversed(schema.name) if c.isdigit()))


@register_rule("avg_pool1d", "avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d",
               "_adaptive_avg_pool3d", "max_pool2d", "upsample_nearest1d", "upsample_nearest2d",
               "upsample_bilinear2d", "upsample_bicubic2d", "reflection_pad1d",
               "reflection_pad2d", "replication_pad2d")
def _windows(schema: OpSchema) -> list[Strategy]:
    outside = _outside_windows(schema)
    return along(schema, [d if d < outside else None for d in range(schema.specs[0].ndim)],
                 partial=False)


@register_rule("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d")
def _windows_and_places(schema: OpSchema) -> list[Strategy]:
    outside = _outside_windows(schema)
    return along(schema, [d if d < outside else None for d in range(schema.specs[0].ndim)],
                 outputs=2)


@register_rule("avg_pool2d_backward", "max_pool2d_with_indices_backward",
               "_adaptive_avg_pool2d_backward")
def _windows_backward(schema: OpSchema) -> list[Strategy]:
    return [((Shard(d),), (Shard(d),) * len(schema.specs))
            for d in range(_outside_windows(schema))]
