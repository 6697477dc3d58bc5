"""What collectives refuse."""
from __future__ import annotations

import math
from typing import Any

from flambeau import Tensor
from flambeau.distributed._c10d.reduce_op import RedOpType, op_type

_TITLES = {"gloo": "Gloo", "mpi": "MPI"}


def single_tensor(value: Any, name: str) -> None:
    """A tensor is needed."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type "
                        f"torch.Tensor\n             but got {type(value)} instead.")


def tensor_list(values: Any, name: str) -> None:
    """A list of tensors is needed."""
    if not isinstance(values, list) or not all(isinstance(v, Tensor) for v in values):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type "
                        f"List[torch.Tensor]\n             but got {type(values)} instead.")


def reduction(tensor: Tensor, op: Any, backend: str) -> str:
    """The name of a reduction that fits the tensor."""
    kind = op_type(op)
    if kind in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and (
            tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
    if kind is RedOpType.PREMUL_SUM:
        raise RuntimeError(f"Cannot use ReduceOp.PREMUL_SUM with {_TITLES.get(backend, backend)}")
    return kind.name


def same_type(*tensors: Tensor) -> None:
    """All tensors of a call have one type."""
    for tensor in tensors[1:]:
        if tensor.dtype is not tensors[0].dtype:
            raise ValueError("Invalid usage of tensors with different dtypes"
                             f"Found {tensors[0].dtype} and  {tensor.dtype}")


def outputs(found: list[Tensor], tensor: Tensor, count: int, call: str) -> None:
    """One entry for each process, of the type and size of what each gives."""
    if len(found) != count:
        raise RuntimeError(f"{call}: invalid output tensor list at index 0 "
                           f"(expected length {count}, got {len(found)})")
    same_type(*found, tensor)
    for i, output in enumerate(found):
        same_size(output, tensor, call, i)


def gathered(found: list[Tensor], tensor: Tensor, count: int, call: str) -> None:
    """The same at the one process that gets them."""
    if len(found) != count:
        raise RuntimeError(f"{call}: Incorrect output list size {len(found)}. Output list size "
                           f"should be {count}, same as size of the process group.")
    outputs(found, tensor, count, call)


def parts_to_reduce(found: list[Tensor], output: Tensor, rank: int, count: int, call: str) -> None:
    """One entry for each process, of the output's type; that of this process has its size."""
    if len(found) != count:
        raise RuntimeError(f"{call}: invalid input tensor list size, must be world size: {count}, "
                           f"got {len(found)}")
    same_type(output, *found)
    same_size(found[rank], output, call, rank)


def parts(found: list[Tensor], tensor: Tensor, count: int, call: str) -> None:
    """One entry for each process, of the type and size of what each gets."""
    if len(found) != count:
        raise RuntimeError(f"{call}: Incorrect input list size {len(found)}. Input list size "
                           f"should be {count}, same as size of the process group.")
    same_type(tensor, *found)
    for i, part in enumerate(found):
        same_size(part, tensor, call, i)


def same_size(output: Tensor, tensor: Tensor, call: str, index: int = 0) -> None:
    """The one has the shape of the other."""
    if output.shape != tensor.shape:
        raise RuntimeError(f"{call}: invalid tensor size at index {index} "
                           f"(expected {_shape(tensor)}, got {_shape(output)})")


def whole(found: Tensor, part: Tensor, count: int, call: str) -> None:
    """`found` has room for `count` tensors like `part`."""
    same_type(found, part)
    if found.numel() != count * part.numel():
        raise RuntimeError(f"{call}: invalid tensor size at index 0 (expected "
                           f"{count} times {_shape(part)}, got {_shape(found)})")


def split(tensor: Tensor, sizes: Any, count: int) -> list[Tensor]:
    """The parts of a tensor: of equal size, or of these numbers of rows."""
    if not sizes:
        if count == 1:
            return [tensor.detach()]
        if tensor.shape[0] % count:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        sizes = [tensor.shape[0] // count] * count
    if len(sizes) != count:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != tensor.shape[0]:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(tensor.detach().split(list(sizes)))


def fitting(found: Tensor, like: Tensor, call: str) -> Tensor:
    """What has arrived, in the shape of where it goes."""
    if found.numel() != like.numel():
        raise RuntimeError(f"{call}: received {found.numel()} elements, but the "
                           f"tensor has {like.numel()}")
    return found.view(like.shape)


def part(sent: int, source: int, expected: int, to: int) -> None:
    """One process sends as much as another expects."""
    if sent != expected:
        raise RuntimeError(f"Detected mismatch between collectives on ranks. Rank {source} sends "
                           f"{sent} elements to rank {to} in alltoall, which expects {expected}")


def misfit(tensor: Tensor, receiver: str, dtype: str, shape: list[int], sender: str) -> str:
    """Why what has been sent does not fit where it goes; "" if it does."""
    if dtype == str(tensor.dtype) and math.prod(shape) == tensor.numel():
        return ""
    return (f"Detected mismatch between send and recv: {sender} sends {dtype} {shape}, but "
            f"{receiver} receives {tensor.dtype} {list(tensor.shape)}")


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"
