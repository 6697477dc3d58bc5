"""How modes and subclasses that look below autograd see an op, where that is not its own schema."""
from __future__ import annotations

from typing import Any, NamedTuple


class Shown(NamedTuple):
    """How an op is shown as another overload of PyTorch's.

    schema      that overload's
    arguments   a formula of the op's own arguments, which gives those of the overload, or None
                where it is not that; nothing, if they have the same names
    run         what computes the overload, if not the public function of that name
    grads       the gradients of its tensors by PyTorch's ops: a formula of `grad`, `needs`,
                arguments by the schema's names, `result`
    """
    schema: str
    arguments: Any = None
    run: Any = None
    grads: Any = None
