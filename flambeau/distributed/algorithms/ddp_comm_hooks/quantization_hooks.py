"""Gradients that travel as bytes, each with a scale and a zero point."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.futures import Future


def _quantize_per_tensor_backend(x: Tensor, scale: Any, zero_point: Any) -> Tensor:
    return (flambeau.round(x / scale) + zero_point).clamp(0, 255).to(flambeau.uint8)


def _dequantize_per_tensor_backend(y: Tensor, scale: Any, zero_point: Any) -> Tensor:
    return scale * (y.to(flambeau.float32) - zero_point)


def _quantize_per_channel_backend(x: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    return _quantize_per_tensor_backend(x, scale[:, None], zero_point[:, None])


def _dequantize_per_channel_backend(y: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    return _dequantize_per_tensor_backend(y, scale[:, None], zero_point[:, None])


def _get_allgather_out_list(all_gather_in_list: Tensor, world_size: int) -> list[Tensor]:
    return [flambeau.zeros_like(all_gather_in_list) for _ in range(world_size)]


def _quantized_mean(process_group: Any, tensor: Tensor, rows: Tensor) -> Future[Tensor]:
    """The mean of all processes' rows, each of which has been quantized by itself."""
    group = dist.group.WORLD if process_group is None else process_group
    low, high = rows.amin(1).clamp(max=0), rows.amax(1).clamp(min=0)
    scale = ((high - low) / 255).clamp(min=flambeau.finfo(flambeau.float32).eps)
    zero_point = (-flambeau.round(low / scale)).clamp(0, 255)
    own = flambeau.stack([scale, zero_point])
    scales = _get_allgather_out_list(own, group.size())
    dist.all_gather(scales, own, group)
    quantized = _quantize_per_channel_backend(rows, scale, zero_point)
    every = _get_allgather_out_list(quantized, group.size())
    work = dist.all_gather(every, quantized, group, async_op=True)

    def mean(done: Future) -> Tensor:
        done.value()
        total = sum(_dequantize_per_channel_backend(values, *of_rank)
                    for values, of_rank in zip(every, scales))
        return (total / group.size()).flatten()[:tensor.numel()].to(tensor.dtype)
    return work.get_future().then(mean)


def quantization_pertensor_hook(process_group: Any, bucket: Any) -> Future[Tensor]:
    """The mean of the gradients, which travel as bytes, with one scale for a bucket."""
    tensor = bucket.buffer()
    return _quantized_mean(process_group, tensor, tensor.view(1, -1))


def quantization_perchannel_hook(process_group: Any, bucket: Any,
                                 bucket_size: int = 512) -> Future[Tensor]:
    """The mean of the gradients, which travel as bytes, with a scale for every `bucket_size`."""
    tensor = bucket.buffer()
    padded = flambeau.nn.functional.pad(tensor, [0, -tensor.numel() % bucket_size])
    return _quantized_mean(process_group, tensor, padded.view(-1, bucket_size))
