"""`loss_parallel`: cross entropy of scores whose classes are shared among processes."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import flambeau
from flambeau._ops import aten
from flambeau.core.tensor import Tensor
from flambeau.distributed import _functional_collectives as funcol
from flambeau.distributed.tensor import DTensor, Partial, Replicate, Shard
from flambeau.distributed.tensor._api import distributed_as
from flambeau.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from flambeau.distributed.tensor._utils import (
    compute_global_tensor_info,
    compute_local_shape_and_global_offset,
)
from flambeau.distributed.tensor.placement_types import Placement

__all__ = ["loss_parallel"]


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """Inside, `cross_entropy` of scores that are cut along the classes leaves them cut: processes
    exchange a number for each row, never the scores. Backward has to run inside, too.

    >>> from flambeau import distributed as dist
    >>> from flambeau.distributed.tensor import Shard, distribute_tensor
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> scores = distribute_tensor(flambeau.zeros(2, 4), mesh, [Shard(1)]).requires_grad_()
    >>> with loss_parallel():
    ...     loss = F.cross_entropy(scores, flambeau.tensor([1, 3]))
    ...     loss.backward()
    >>> scores.grad.placements
    (Shard(dim=1),)
    >>> dist.destroy_process_group()
    """
    _enable_custom_loss_ops()
    try:
        yield
    finally:
        _disable_custom_loss_ops()


def _find_all_reduce_mesh_dim(placements: Sequence[Placement], dim: int) -> int:
    """The dimension of the mesh that cuts the classes."""
    found = [i for i, placement in enumerate(placements) if placement.is_shard(dim)]
    if len(found) != 1:
        raise ValueError("loss_parallel() requires exactly one mesh dim to shard tensor dimension "
                         f"{dim}, but got placements {tuple(placements)} with {len(found)} such "
                         "mesh dim(s).")
    return found[0]


def _cast_to_dtensor(tensor: Any, placements: Sequence[Placement], mesh: Any) -> DTensor:
    """A tensor in these placements; a local one has them."""
    if isinstance(tensor, DTensor):
        if tuple(tensor.placements) == tuple(placements):
            return tensor
        raise RuntimeError(f"Expected {placements} but got {tensor.placements}.")
    if isinstance(tensor, Tensor):
        return DTensor.from_local(tensor, device_mesh=mesh, placements=placements, run_check=False)
    raise TypeError(f"Unsupported type {type(tensor)}")


# ---- log_softmax --------------------------------------------------------------------------------

def _log_softmax(x: Tensor, dim: int, half_to_float: bool, mesh: Any, mesh_dim: int) -> Tensor:
    """This process's piece: greatest score and sum of exponentials are found together."""
    half = x.dtype in (flambeau.float16, flambeau.bfloat16)
    wide = x.float() if half else x
    shape = [1 if d == dim else size for d, size in enumerate(x.shape)]
    most = wide.amax(dim, keepdim=True) if x.shape[dim] else wide.new_full(shape, -flambeau.inf)
    shifted = wide - funcol.all_reduce(most, "max", (mesh, mesh_dim))
    total = funcol.all_reduce(shifted.exp().sum(dim, keepdim=True), "sum", (mesh, mesh_dim))
    result = shifted - total.log()
    return result.to(x.dtype) if half and not half_to_float else result


def _log_softmax_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, dim, half_to_float = args
    dim = dim + x.ndim if dim < 0 else dim
    spec = x._spec
    mesh_dim = _find_all_reduce_mesh_dim(spec.placements, dim)
    return distributed_as(spec, _log_softmax(x._local_tensor, dim, half_to_float, spec.mesh,
                                            mesh_dim))


def _log_softmax_backward_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
                                  ) -> Any:
    """The sum of a row's gradients is known where they come from the loss, which depends on one
    class only; others are summed up over the processes."""
    grad, output, dim, dtype = args
    dim = dim + output.ndim if dim < 0 else dim
    spec = output._spec
    mesh_dim = _find_all_reduce_mesh_dim(spec.placements, dim)
    if grad.placements != spec.placements:
        grad = grad.redistribute(placements=spec.placements)
    local, sums = grad._local_tensor, getattr(grad, "_sum_over_classes", None)
    if sums is None:
        sums = funcol.all_reduce(local.sum(dim, keepdim=True), "sum", (spec.mesh, mesh_dim))
    found = local - output._local_tensor.exp() * sums
    return distributed_as(spec, found.to(dtype))


# ---- nll_loss -----------------------------------------------------------------------------------

class _Classes(NamedTuple):
    """Which classes this process has, of the targets."""
    places: Tensor          # of the targets' classes in its piece, 0 where it has them not
    here: Tensor            # does it have them?
    weights: Tensor         # of the targets' classes, 0 where a target is ignored


def _classes(spec: DTensorSpec, dim: int, target: Tensor, weight: Tensor | None,
             ignore_index: int, dtype: Any) -> _Classes:
    count = spec.shape[dim]
    counted = target != ignore_index
    wrong = counted & ((target < 0) | (target >= count))
    if wrong.any():
        raise IndexError(f"Target {int(target[wrong][0])} is out of bounds.")
    safe = flambeau.where(counted, target, 0)
    shape, offset = compute_local_shape_and_global_offset(spec.shape, spec.mesh, spec.placements)
    here = counted & (safe >= offset[dim]) & (safe < offset[dim] + shape[dim])
    weights = counted.to(dtype) if weight is None else flambeau.where(counted, weight[safe], 0)
    return _Classes(flambeau.where(here, safe - offset[dim], 0), here, weights)


def _of_rows(spec: DTensorSpec, dim: int) -> tuple[Placement, ...]:
    """How a tensor without classes lies: as the scores, but whole where the classes are cut."""
    found: list[Placement] = []
    for placement in spec.placements:
        if not isinstance(placement, Shard) or placement.dim == dim:
            found.append(Replicate())
        else:
            found.append(Shard(placement.dim - (placement.dim > dim)))
    return tuple(found)


def _local(value: Any, placements: Sequence[Placement], mesh: Any) -> Any:
    """This process's piece of a target or of weights, given in whichever form."""
    if value is None:
        return None
    if not isinstance(value, DTensor) and any(p.is_shard() for p in placements):
        raise ValueError("loss_parallel() requires a DTensor (not a plain torch.Tensor) where the "
                         f"scores are cut along other dimensions, too: it should lie as "
                         f"{tuple(placements)}. Use DTensor.from_local or distribute_tensor.")
    return _cast_to_dtensor(value, placements, mesh)._local_tensor


def _result(local: Tensor, mesh: Any, placements: Sequence[Placement]) -> DTensor:
    shape, stride = compute_global_tensor_info(local, mesh, placements)
    meta = TensorMeta(flambeau.Size(shape), tuple(stride), local.dtype)
    return DTensor(local, DTensorSpec(mesh, tuple(placements), meta), requires_grad=False)


class _Loss:
    """One call: the scores' spec, and the target and weights of this process."""

    def __init__(self, x: DTensor, target: Any, weight: Any, ignore_index: int):
        self.spec, self.mesh = x._spec, x._spec.mesh
        self.dim = 1 if x.ndim >= 2 else 0
        self.mesh_dim = _find_all_reduce_mesh_dim(self.spec.placements, self.dim)
        self.rows = _of_rows(self.spec, self.dim)
        self.whole = (Replicate(),) * self.mesh.ndim
        self.found = _classes(self.spec, self.dim, _local(target, self.rows, self.mesh),
                              _local(weight, self.whole, self.mesh), ignore_index, x.dtype)

    def picked(self, local: Tensor) -> Tensor:
        """The targets' scores, of all processes' classes."""
        dim, found = self.dim, self.found
        if local.shape[dim]:
            mine = local.gather(dim, found.places.unsqueeze(dim)).squeeze(dim)
            mine = flambeau.where(found.here, mine, 0)
        else:
            mine = local.new_zeros(found.places.shape)
        return funcol.all_reduce(mine, "sum", (self.mesh, self.mesh_dim))

    def total_weight(self) -> Tensor:
        """The weights of all rows."""
        total = self.found.weights.sum()
        for i, placement in enumerate(self.rows):
            if placement.is_shard():
                total = funcol.all_reduce(total, "sum", (self.mesh, i))
        return total


def _nll_loss_forward_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, target, weight, reduction, ignore_index = args
    loss = _Loss(x, target, weight, ignore_index)
    losses = 0 - loss.picked(x._local_tensor) * loss.found.weights
    if reduction == 0:
        return (_result(losses, loss.mesh, loss.rows),
                _result(losses.new_zeros(()), loss.mesh, loss.whole))
    total, summed = loss.total_weight(), losses.sum()
    terms = [Partial() if p.is_shard() else p for p in loss.rows]
    return (_result(summed / total if reduction == 1 else summed, loss.mesh, terms),
            _result(total, loss.mesh, loss.whole))


def _nll_loss_backward_handler(op_call: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    grad, x, target, weight, reduction, ignore_index, total = args
    loss, local = _Loss(x, target, weight, ignore_index), x._local_tensor
    dim, found = loss.dim, loss.found
    wanted = loss.rows if reduction == 0 else loss.whole
    scaled = -found.weights * grad.redistribute(placements=wanted)._local_tensor
    if reduction == 1:
        scaled = scaled / _local(total, loss.whole, loss.mesh)
    values = flambeau.where(found.here, scaled, 0).unsqueeze(dim).to(local.dtype)
    gradient = flambeau.zeros_like(local)
    if local.shape[dim]:
        gradient = gradient.scatter(dim, found.places.unsqueeze(dim), values)
    result = distributed_as(loss.spec, gradient)
    result._sum_over_classes = scaled.unsqueeze(dim)            # type: ignore[attr-defined]
    return result


customized_loss_ops: dict[Any, Any] = {
    aten._log_softmax.default: _log_softmax_handler,
    aten._log_softmax_backward_data.default: _log_softmax_backward_handler,
    aten.nll_loss_forward.default: _nll_loss_forward_handler,
    aten.nll_loss2d_forward.default: _nll_loss_forward_handler,
    aten.nll_loss_backward.default: _nll_loss_backward_handler,
    aten.nll_loss2d_backward.default: _nll_loss_backward_handler,
}


def _enable_custom_loss_ops() -> None:
    DTensor._op_dispatcher._custom_op_handlers.update(customized_loss_ops)


def _disable_custom_loss_ops() -> None:
    for op in customized_loss_ops:
        DTensor._op_dispatcher._custom_op_handlers.pop(op, None)
