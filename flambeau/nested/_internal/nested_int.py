"""The length that varies, which stands in the sizes of nested tensors."""
from __future__ import annotations

import copy
import itertools
from typing import Any

from flambeau import Tensor
from flambeau._support.symbolic_names import SymInt
from flambeau.utils.weak import WeakIdKeyDictionary

_ids = itertools.count(1)


class NestedInt(SymInt):
    """A length that equals itself and its multiples alone, and of which no more is known than that
    it is at least 2."""

    def __init__(self, coeff: int = 1):
        self._coeff, self._id = coeff, next(_ids)

    @property
    def node(self) -> NestedIntNode:
        return NestedIntNode(self._id, self._coeff)

    def __repr__(self) -> str:
        return f"j{self._id}" if self._coeff == 1 else f"{self._coeff}*j{self._id}"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, NestedInt) and self._id == other._id
                and self._coeff == other._coeff)

    def __hash__(self) -> int:
        return hash(("j", self._id, self._coeff))

    def __mul__(self, factor: Any) -> NestedInt:
        if isinstance(factor, NestedInt):
            raise ValueError(f"unsupported: {NestedIntNode}")
        multiple = copy.copy(self)
        multiple._coeff *= factor
        return multiple

    __rmul__ = __mul__

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, NestedInt) and other._id == self._id:
            return self._coeff >= other._coeff
        if isinstance(other, NestedInt) or other > 2:
            raise ValueError("ge: relation is indeterminate")
        return True

    def __gt__(self, other: Any) -> bool:
        return self >= other + 1 if isinstance(other, int) else not other >= self

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other


NestedInt.__name__ = NestedInt.__qualname__ = "SymInt"


class NestedIntNode:
    """What such a length is: its number, and how often it is taken."""

    def __init__(self, t_id: int, coeff: int):
        self.t_id, self.coeff = t_id, coeff

    def nested_int_coeff(self) -> int:
        return self.coeff

    def nested_int(self) -> int:
        return self.t_id

    def is_nested_int(self) -> bool:
        return True

    def is_symbolic(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"{self.coeff}*j{self.t_id}" if self.coeff != 1 else f"j{self.t_id}"


def _refuse(special: str, name: str) -> None:
    def refuse(self: NestedInt, *others: Any) -> Any:
        return getattr(self.node, name)
    setattr(NestedInt, special, refuse)


for _special, _name in {
        "__add__": "add", "__radd__": "add", "__sub__": "sub", "__rsub__": "sub", "__neg__": "neg",
        "__mod__": "mod", "__floordiv__": "int_floordiv", "__int__": "int_", "__index__": "int_",
        "__float__": "int_"}.items():
    _refuse(_special, _name)

# The varying length of each tensor of offsets or lengths: tensors that share one agree in it.
_tensor_symint_registry = WeakIdKeyDictionary()


def get_tensor_symint(tensor: Tensor, *, coeff: int = 1) -> NestedInt:
    """The length that a tensor of offsets or lengths stands for."""
    found = _tensor_symint_registry.get(tensor)
    if found is None:
        found = _tensor_symint_registry[tensor] = NestedInt()
    return found if coeff == 1 else found * coeff


__all__ = ["NestedInt", "NestedIntNode", "get_tensor_symint"]
