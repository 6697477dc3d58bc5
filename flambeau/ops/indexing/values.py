"""What is assigned to a part of a tensor: `x[index] = value`."""
from __future__ import annotations

from typing import Any

import numpy as np

from flambeau.core.modes import shows_ops
from flambeau.core.op import public
from flambeau.core.promotion import type_name
from flambeau.core.tensor import Tensor
from flambeau.ops.factory.create import full
from flambeau.ops.view.reshaping import reshape
from flambeau.schema.errors import type_name as type_name_of


def as_value(value: Any, target: Tensor) -> Tensor:
    """What is assigned, as a tensor."""
    if isinstance(value, Tensor):
        return value
    own = target.dtype
    if isinstance(value, np.integer):
        value = value.item()
    if not isinstance(value, (int, float, complex)):
        raise TypeError(f"can't assign a {type_name_of(value)} to a torch.{type_name(own)}Tensor")
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if shows_ops():
        return public["torch"]["tensor"](value, dtype=own)      # shown as a number of the program's
    return full((), value, dtype=own)


def without_ones(value: Tensor) -> Tensor:
    """A value to be assigned, without leading dimensions of 1."""
    shape = value._array.shape
    ones = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return reshape(value, shape[ones:]) if ones else value


def assign(view: Tensor, value: Tensor) -> None:
    """A view is copied to, or filled with a tensor of one element that has no dimensions."""
    shape, target = value._array.shape, view._array.shape
    if shape == target:
        view.copy_(value)
    elif not shape:
        view.fill_(value)
    else:
        ones = next((i for i, n in enumerate(shape) if n != 1), len(shape))
        value = value.view(shape[ones:])            # PyTorch has a node for it in any case
        view.copy_(value if value._array.shape == target else value.expand(target))
