"""`torch.ops._c10d_functional`: collectives as ops, which give new tensors and have gradients.

A collective is over when its op returns, so that `wait_tensor` has nothing to wait for. The ops of
`c10d_functional` are the same under the arguments that they had before: a tag, ranks and a size.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed._c10d import collectives as c
from flambeau.distributed._c10d import messages, tags
from flambeau.distributed._c10d.reduce_op import RedOpType
from flambeau.distributed._c10d.world import ranks_of, resolve_name
from flambeau.library import Library, register_autograd

library = Library("_c10d_functional", "FRAGMENT")
autograd_library = Library("_c10d_functional_autograd", "FRAGMENT")
legacy_library = Library("c10d_functional", "FRAGMENT")

REDUCTIONS = {kind.name.lower(): kind for kind in RedOpType if kind is not RedOpType.PREMUL_SUM}


def reduction(name: str) -> RedOpType:
    """The reduction of that name."""
    found = REDUCTIONS.get(name) if isinstance(name, str) else None
    if found is None:
        raise RuntimeError(f"Unrecognized reduce_op: {name}")
    return found


# ---- gradients ----------------------------------------------------------------------------------

def _ops() -> Any:
    return flambeau.ops._c10d_functional


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a tensor, or of each tensor of a list."""
    def run(input: Any, *args: Any) -> Any:
        if isinstance(input, (list, tuple)):
            return [function(t, *args) for t in input]
        return function(input, *args)
    return run


def _summed(name: str, op: str) -> None:
    if op.lower() not in ("sum", "avg"):
        raise RuntimeError(f"{name} backward only supports 'sum' reduction, got '{op}'")


def _all_reduce_grad(grad: Any, reduce_op: str, group_name: Any) -> Any:
    _summed("all_reduce", reduce_op)
    if isinstance(grad, (list, tuple)):
        return _ops().all_reduce_coalesced([g.contiguous() for g in grad], reduce_op, group_name)
    return _ops().all_reduce(grad.contiguous(), reduce_op, group_name)


@_each
def _all_gather_grad(grad: Tensor, group_size: int, group_name: Any) -> Tensor:
    return _ops().reduce_scatter_tensor(grad.contiguous(), "sum", group_size, group_name)


@_each
def _reduce_scatter_grad(grad: Tensor, reduce_op: str, group_size: int, group_name: Any) -> Tensor:
    _summed("reduce_scatter_tensor", reduce_op)
    found = _ops().all_gather_into_tensor(grad.contiguous(), group_size, group_name)
    return found / group_size if reduce_op.lower() == "avg" else found


def _all_to_all_grad(grad: Tensor, output_split_sizes: list[int], input_split_sizes: list[int],
                     group_name: Any) -> Tensor:
    return _ops().all_to_all_single(grad.contiguous(), input_split_sizes, output_split_sizes,
                                    group_name)


def _unchanged(grad: Any) -> Any:
    return grad


# ---- shapes -------------------------------------------------------------------------------------

@_each
def _same(input: Tensor, *rest: Any) -> Tensor:
    return input.new_empty(input.shape)


def _given(input: Any, *rest: Any) -> Any:
    return input


@_each
def _gathered(input: Tensor, group_size: int, group_name: Any) -> Tensor:
    return input.new_empty((input.shape[0] * group_size if input.ndim else group_size,
                            *input.shape[1:]))


@_each
def _scattered(input: Tensor, reduce_op: str, group_size: int, group_name: Any) -> Tensor:
    return input.new_empty((input.shape[0] // group_size, *input.shape[1:]))


def _exchanged(input: Tensor, output_split_sizes: list[int], input_split_sizes: list[int],
               group_name: Any) -> Tensor:
    rows = sum(output_split_sizes) if output_split_sizes else input.shape[0]
    return input.new_empty((rows, *input.shape[1:]))


# ---- ops ----------------------------------------------------------------------------------------

_schemas: dict[str, str] = {}


def _op(schema: str, shape: Callable[..., Any],
        grad: Callable[..., Any] | None = None) -> Callable[[Any], Any]:
    """A decorator: the kernel is that of an op. `shape` gives the results of tensors without
    values, `grad` the gradient of the first argument, of that of the result and all others."""
    name = schema.partition("(")[0]
    _schemas[name] = schema

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.call = inputs[1:]

    def backward(ctx: Any, gradient: Any) -> Any:
        return grad(gradient, *ctx.call), *[None] * len(ctx.call)

    def declare(kernel: Any) -> Any:
        library.define(schema)
        library.impl(name, kernel, "CompositeExplicitAutograd")
        library._register_fake(name, shape)
        if grad is not None:
            register_autograd(f"_c10d_functional::{name}", backward, setup_context=save,
                              lib=library)
        return kernel
    return declare


@_op("all_reduce(Tensor input, str reduce_op, Any group_name) -> Tensor", _same, _all_reduce_grad)
def all_reduce(input: Tensor, reduce_op: str, group_name: Any) -> Tensor:
    return all_reduce_(input.clone(memory_format=flambeau.contiguous_format), reduce_op,
                       group_name)


@_op("all_reduce_(Tensor(a!) input, str reduce_op, Any group_name) -> Tensor(a!)", _given)
def all_reduce_(input: Tensor, reduce_op: str, group_name: Any) -> Tensor:
    c.all_reduce(input, reduction(reduce_op), resolve_name(group_name))
    return input


@_op("all_reduce_coalesced(Tensor[] inputs, str reduce_op, Any group_name) -> Tensor[]", _same,
     _all_reduce_grad)
def all_reduce_coalesced(inputs: list[Tensor], reduce_op: str, group_name: Any) -> list[Tensor]:
    return all_reduce_coalesced_([t.clone() for t in inputs], reduce_op, group_name)


@_op("all_reduce_coalesced_(Tensor[](a!) inputs, str reduce_op, Any group_name) -> Tensor[](a!)",
     _given)
def all_reduce_coalesced_(inputs: list[Tensor], reduce_op: str, group_name: Any) -> list[Tensor]:
    c.all_reduce_coalesced(inputs, reduction(reduce_op), resolve_name(group_name))
    return inputs


@_op("all_gather_into_tensor(Tensor input, int group_size, Any group_name) -> Tensor", _gathered,
     _all_gather_grad)
def all_gather_into_tensor(input: Tensor, group_size: int, group_name: Any) -> Tensor:
    return all_gather_into_tensor_out(input, group_size, group_name,
                                      out=_gathered(input, group_size, group_name))


@_op("all_gather_into_tensor_out(Tensor input, int group_size, Any group_name, *, "
     "Tensor(a!) out) -> Tensor(a!)", lambda *args, out: out)
def all_gather_into_tensor_out(input: Tensor, group_size: int, group_name: Any, *, out: Tensor
                               ) -> Tensor:
    c.all_gather_into_tensor(out, input.contiguous(), resolve_name(group_name))
    return out


_op("all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, Any group_name) -> "
    "Tensor[]", _gathered, _all_gather_grad)(_each(all_gather_into_tensor))


@_op("reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, Any group_name) -> Tensor",
     _scattered, _reduce_scatter_grad)
def reduce_scatter_tensor(input: Tensor, reduce_op: str, group_size: int, group_name: Any
                          ) -> Tensor:
    return reduce_scatter_tensor_out(
        input, reduce_op, group_size, group_name,
        out=_scattered(input, reduce_op, group_size, group_name))


@_op("reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, Any group_name, *, "
     "Tensor(a!) out) -> Tensor(a!)", lambda *args, out: out)
def reduce_scatter_tensor_out(input: Tensor, reduce_op: str, group_size: int, group_name: Any, *,
                              out: Tensor) -> Tensor:
    c.reduce_scatter_tensor(out, input.contiguous(), reduction(reduce_op),
                            resolve_name(group_name))
    return out


_op("reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, "
    "Any group_name) -> Tensor[]", _scattered, _reduce_scatter_grad)(_each(reduce_scatter_tensor))


@_op("all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, "
     "Any group_name) -> Tensor", _exchanged, _all_to_all_grad)
def all_to_all_single(input: Tensor, output_split_sizes: list[int], input_split_sizes: list[int],
                      group_name: Any) -> Tensor:
    out = _exchanged(input, output_split_sizes, input_split_sizes, group_name)
    c.all_to_all_single(out, input.contiguous(), output_split_sizes, input_split_sizes,
                        resolve_name(group_name))
    return out


@_op("broadcast(Tensor input, int src, Any group_name) -> Tensor", _same)
def broadcast(input: Tensor, src: int, group_name: Any) -> Tensor:
    return broadcast_(input.clone(memory_format=flambeau.contiguous_format), src, group_name)


@_op("broadcast_(Tensor(a!) input, int src, Any group_name) -> Tensor(a!)", _given)
def broadcast_(input: Tensor, src: int, group_name: Any) -> Tensor:
    c.broadcast(input, group=resolve_name(group_name), group_src=src)
    return input


@_op("wait_tensor(Tensor tensor) -> Tensor", _given, _unchanged)
def wait_tensor(tensor: Tensor) -> Tensor:
    return tensor.view_as(tensor)


@_op("_wrap_tensor_autograd(Tensor input) -> Tensor", _given, _unchanged)
def _wrap_tensor_autograd(input: Tensor) -> Tensor:
    from flambeau.distributed._functional_collectives import AsyncCollectiveTensor
    return AsyncCollectiveTensor(input)


@_op("isend(Tensor tensor, int dst, int tag, str group_name) -> Tensor", _given)
def isend(tensor: Tensor, dst: int, tag: int, group_name: Any) -> Tensor:
    messages.isend(tensor, group=resolve_name(group_name), tag=tag, group_dst=dst)
    return tensor.view_as(tensor)


@_op("irecv(Tensor tensor, int src, int tag, str group_name) -> Tensor", _given)
def irecv(tensor: Tensor, src: int, tag: int, group_name: Any) -> Tensor:
    messages.recv(tensor, group=resolve_name(group_name), tag=tag, group_src=src)
    return tensor.view_as(tensor)


@_op("batch_p2p_ops(str[] op_list, int[] peer_list, int[] tag_list, Tensor[] tensors, "
     "str group_name) -> Tensor[]",
     lambda op_list, peer_list, tag_list, tensors, group_name: list(tensors))
def batch_p2p_ops(op_list: list[str], peer_list: list[int], tag_list: list[int],
                  tensors: list[Tensor], group_name: Any) -> list[Tensor]:
    group = resolve_name(group_name)
    kinds = {"isend": messages.isend, "irecv": messages.irecv}
    works = messages.batch_isend_irecv([
        messages.P2POp(kinds[op], tensor, group=group, tag=tag, group_peer=peer)
        for op, peer, tag, tensor in zip(op_list, peer_list, tag_list, tensors)])
    for work in works:
        work.wait()
    return [t.view_as(t) for t in tensors]


# ---- the same ops under other names -------------------------------------------------------------

def _forwarded(name: str) -> Callable[..., Any]:
    return lambda *args: getattr(_ops(), name)(*args)


for _name in ("all_gather_into_tensor", "all_to_all_single", "reduce_scatter_tensor"):
    autograd_library.define(_schemas[_name])
    autograd_library.impl(_name, _forwarded(_name), "CompositeImplicitAutograd")


def _legacy(name: str, size_at: int | None = None) -> Callable[..., Any]:
    """An op whose last arguments are the tag, the ranks and the size of its group."""
    def run(*args: Any) -> Any:
        *given, tag, ranks, group_size = args
        group = tags.find_by_ranks_and_tag(tag, list(ranks))
        if group is None:
            group = tags.find_or_create_by_ranks_and_tag(tag, list(ranks), group_size)
        if size_at is not None:
            given.insert(size_at, group_size)
        if name == "all_to_all_single":
            given[1:] = [list(sizes or ()) for sizes in given[1:]]
        if name == "broadcast":
            given[1] = ranks_of(group).index(given[1])
        return getattr(_ops(), name)(*given, group.group_name)
    return run


_PLACE = "str tag, int[] ranks, int group_size"
for _name, _schema, _at in (
        ("broadcast", "(Tensor self, int src, {}) -> Tensor", None),
        ("all_reduce", "(Tensor self, str reduceOp, {}) -> Tensor", None),
        ("all_reduce_coalesced", "(Tensor[] self, str reduceOp, {}) -> Tensor[]", None),
        ("all_gather_into_tensor", "(Tensor shard, {}) -> Tensor", 1),
        ("all_gather_into_tensor_coalesced", "(Tensor[] input, {}) -> Tensor[]", 1),
        ("reduce_scatter_tensor", "(Tensor input, str reduceOp, {}) -> Tensor", 2),
        ("reduce_scatter_tensor_coalesced", "(Tensor[] inputs, str reduceOp, {}) -> Tensor[]", 2),
        ("all_to_all_single", "(Tensor input, SymInt[]? output_split_sizes, SymInt[]? "
         "input_split_sizes, {}) -> Tensor", None)):
    legacy_library.define(_name + _schema.format(_PLACE))
    legacy_library.impl(_name, _legacy(_name, _at), "CompositeImplicitAutograd")
legacy_library.define("wait_tensor(Tensor self) -> Tensor")
legacy_library.impl("wait_tensor", _forwarded("wait_tensor"), "CompositeImplicitAutograd")
for _schema in ("isend(Tensor self, int dst, int tag, str group_name) -> Tensor",
                "irecv(Tensor self, int src, int tag, str group_name) -> Tensor",
                "batch_p2p_ops(str[] op_list, int[] peer_list, int[] tag_list, Tensor[] tensors, "
                "str group_name) -> Tensor[]"):
    _name = _schema.partition("(")[0]
    legacy_library.define(_schema)
    legacy_library.impl(_name, _forwarded(_name), "CompositeImplicitAutograd")
