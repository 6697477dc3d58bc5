"""Collectives through which gradients flow: what goes forward from one process to another, its
gradient goes back.

>>> from flambeau import distributed as dist
>>> import flambeau, warnings
>>> warnings.simplefilter("ignore", FutureWarning)
>>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
>>> x = flambeau.ones(2, requires_grad=True)
>>> all_reduce(x).sum().backward()
>>> x.grad
tensor([1., 1.])
>>> dist.destroy_process_group()
"""
from __future__ import annotations

import warnings
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.autograd import Function
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.distributed_c10d import ReduceOp, group

# `group` is an argument of every function below.
_default = group


def _deprecated(name: str, suggestion: str) -> None:
    warnings.warn(f"torch.distributed.nn.functional.{name} is deprecated, use "
                  f"torch.distributed._functional_collectives.{suggestion} instead.",
                  FutureWarning, stacklevel=3)


def _group(given: Any) -> Any:
    return _default.WORLD if given is None else given


# ---- functions ----------------------------------------------------------------------------------

def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """What process `src` has; its gradient is the sum of all processes' gradients."""
    _deprecated("broadcast", "broadcast")
    return _Broadcast.apply(src, _group(group), tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors at process `dst`, zeros elsewhere."""
    return _Gather.apply(dst, _group(group), tensor)


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process's of the tensors that process `src` has."""
    return _Scatter.apply(src, _group(group), *tensors)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or what `op` says) of all processes' tensors at process `dst`."""
    return _Reduce.apply(dst, op, _group(group), tensor)


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM,
                   group: Any = None) -> Tensor:
    """The sum of all processes' entries for this one; `output` says what it is like."""
    _deprecated("reduce_scatter", "reduce_scatter_single")
    return _Reduce_Scatter.apply(op, _group(group), output, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors."""
    _deprecated("all_gather", "all_gather_single")
    return _AllGather.apply(_group(group), tensor)


def _all_gather_base(output_tensor: Tensor, input_tensor: Tensor, group: Any = None) -> Tensor:
    """All processes' tensors one after the other; `output_tensor` says what that is like."""
    return _AllGatherBase.apply(output_tensor, input_tensor, _group(group))


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor],
               group: Any = None) -> tuple[Tensor, ...]:
    """Entry i for process i, of all processes; the outputs say what comes."""
    sizes = [t.size() for t in output_tensor_list]
    return _AlltoAll.apply(_group(group), sizes, *input_tensor_list)


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: Any = None,
                      input_split_sizes: Any = None, group: Any = None) -> Tensor:
    """`all_to_all` of parts of one tensor; `output` says what comes."""
    _deprecated("all_to_all_single", "all_to_all_single")
    return _AlltoAllSingle.apply(_group(group), output, output_split_sizes, input_split_sizes,
                                 input)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The sum (or what `op` says) of all processes' tensors, for all."""
    _deprecated("all_reduce", "all_reduce")
    return _AllReduce.apply(op, _group(group), tensor)


# ---- the same with their gradients --------------------------------------------------------------

class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensor.clone(memory_format=flambeau.contiguous_format)
        dist.broadcast(result, src, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        grad = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad_output)
        return None, None, grad if dist.get_rank() == ctx.src else flambeau.zeros_like(grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> Any:
        ctx.dst, ctx.group = dst, group
        found = [flambeau.zeros_like(tensor) for _ in range(dist.get_world_size(group))]
        mine = dist.get_rank() == dst
        dist.gather(tensor.contiguous(), found if mine else None, dst, group=group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grad_outputs)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        assert all(t.size() == tensors[0].size() for t in tensors), "tensors of one size"
        ctx.src, ctx.group = src, group
        output = flambeau.zeros_like(tensors[0])
        mine = dist.get_rank() == src
        dist.scatter(output, [t.contiguous() for t in tensors] if mine else None, src,
                     group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad_output)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = tensor.clone(memory_format=flambeau.contiguous_format)
        dist.reduce(result, dst, op=op, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad_output)


class _Reduce_Scatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor, *input_tensor_list: Tensor
                ) -> Tensor:
        ctx.group = group
        output = flambeau.empty_like(tensor, memory_format=flambeau.contiguous_format)
        dist.reduce_scatter(output, [t.contiguous() for t in input_tensor_list], op=op,
                            group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return None, None, None, *_AllGather.apply(ctx.group, grad_output)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> Any:
        ctx.group = group
        tensor = tensor.contiguous()
        found = [flambeau.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(found, tensor, group=group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        like = grad_outputs[dist.get_rank(ctx.group)]
        return None, _Reduce_Scatter.apply(ReduceOp.SUM, ctx.group, like, *grad_outputs)


class _AllGatherBase(Function):
    @staticmethod
    def forward(ctx: Any, output_tensor: Tensor, input_tensor: Tensor, group: Any) -> Tensor:
        ctx.group = group
        output = flambeau.empty_like(output_tensor, memory_format=flambeau.contiguous_format)
        dist.all_gather_into_tensor(output, input_tensor.contiguous(), group=group)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        size = dist.get_world_size(ctx.group)
        if grad_output.shape[0] % size:
            raise RuntimeError(f"Tensor with dimensions: {grad_output.shape} does not have first "
                               f"dimension divisible by world_size: {size}")
        grad = grad_output.new_empty((grad_output.shape[0] // size, *grad_output.shape[1:]))
        dist.reduce_scatter_tensor(grad, grad_output.contiguous(), group=ctx.group)
        return None, grad, None


class _AlltoAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, sizes: list[Any], *tensors: Tensor) -> Any:
        ctx.group = group
        ctx.input_sizes = [t.size() for t in tensors]
        found = [tensors[0].new_empty(size) for size in sizes]
        dist.all_to_all(found, [t.contiguous() for t in tensors], group=group)
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        return None, None, *_AlltoAll.apply(ctx.group, ctx.input_sizes, *grad_outputs)


class _AlltoAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, output: Tensor, output_split_sizes: Any,
                input_split_sizes: Any, input: Tensor) -> Tensor:
        ctx.group, ctx.input_size = group, input.size()
        ctx.splits = output_split_sizes, input_split_sizes
        result = input.new_empty(output.size())
        dist.all_to_all_single(result, input.contiguous(), output_split_sizes, input_split_sizes,
                               group=group)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        outputs, inputs = ctx.splits
        like = grad_output.new_empty(ctx.input_size)
        return None, None, None, None, _AlltoAllSingle.apply(ctx.group, like, inputs, outputs,
                                                             grad_output)


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.clone(memory_format=flambeau.contiguous_format)
        dist.all_reduce(result, op=op, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad_output)
