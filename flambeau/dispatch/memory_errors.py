"""What PyTorch says where NumPy finds no memory, or none that a number of bytes can say."""
from __future__ import annotations

import math
import re
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.kernels._extension import Misfit

_TOO_DEEP = re.compile("too many dimensions|maximum supported dimension")


def too_large(args: tuple[Any, ...], error: Exception) -> Exception | None:
    """For NumPy's error about memory that there is not, that no number of bytes can say, or with
    more dimensions than its arrays have; for a kernel's that has no place for them, too."""
    if isinstance(error, Misfit) or _TOO_DEEP.match(str(error)):
        deepest = max([arg.ndim if isinstance(arg, Tensor) else len(arg) for arg in args
                       if isinstance(arg, (Tensor, tuple, list))], default=0)
        return NotImplementedError("tensors of more than 64 dimensions") if deepest >= 64 else None
    if isinstance(error, MemoryError):
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        if shape is None or dtype is None:
            return None
        return RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: "
                            "can't allocate memory: you tried to allocate "
                            f"{math.prod(shape) * dtype.itemsize} bytes. Error code 12 (Cannot "
                            "allocate memory)")
    if not str(error).startswith(("array is too big", "Maximum allowed dimension exceeded")):
        return None
    sizes = [n for arg in args for n in (arg if isinstance(arg, (tuple, list)) else (arg,))
             if isinstance(n, int) and not isinstance(n, bool)]
    viewed = [arg._array.size for arg in args if isinstance(arg, Tensor)]
    if not viewed and 0 in sizes:
        return RuntimeError("Stride calculation overflowed")
    extents = [n for n in sizes if n > 0] + viewed * (-1 in sizes)
    if not sizes or (viewed and math.prod(extents) >= 2 ** 63):
        return RuntimeError("numel: integer multiplication overflow")
    return RuntimeError(f"Storage size calculation overflowed with sizes={sizes}")
