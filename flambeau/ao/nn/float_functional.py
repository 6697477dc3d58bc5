"""Modules that hold operations which no module stands for, so that results can be watched."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._support.own_methods import define_in_subclasses

_FLOAT: dict[str, Any] = {
    "add": flambeau.add, "mul": flambeau.mul, "matmul": flambeau.matmul,
    "add_relu": lambda x, y: flambeau.add(x, y).relu(),
    "cat": lambda x, dim=0: flambeau.cat(x, dim=dim)}
_WITH_NUMBER: dict[str, Any] = {"add_scalar": flambeau.add, "mul_scalar": flambeau.mul}


@define_in_subclasses(further=True)
class _Operations(nn.Module):
    """Each operation is a method; `_watched` sees its result."""

    _SHORT_NAME = "FloatFunctional"

    def _call(self, name: str, *args: Any) -> Tensor:
        return _FLOAT[name](*args)

    def _call_with_number(self, name: str, x: Tensor, y: float) -> Tensor:
        return _WITH_NUMBER[name](x, y)

    def _watched(self, result: Tensor) -> Tensor:
        return result

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(f"{self._SHORT_NAME} is not intended to use the 'forward'. Please use "
                           "the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._watched(self._call("add", x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y with a number, which is not watched."""
        return self._call_with_number("add_scalar", x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x · y."""
        return self._watched(self._call("mul", x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x · y with a number, which is not watched."""
        return self._call_with_number("mul_scalar", x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """Tensors one after another."""
        return self._watched(self._call("cat", x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """max(x + y, 0)."""
        return self._watched(self._call("add_relu", x, y))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """The matrix product."""
        return self._watched(self._call("matmul", x, y))


class FloatFunctional(_Operations):
    """Operations on float tensors, which become those of `QFunctional`.

    >>> from flambeau.ao.nn.quantized import FloatFunctional
    >>> FloatFunctional().add(flambeau.ones(2), flambeau.ones(2))
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process: nn.Module = nn.Identity()

    def _watched(self, result: Tensor) -> Tensor:
        return self.activation_post_process(result)


class FXFloatFunctional(_Operations):
    """The operations, for programs that `fx` traces: it watches results by itself."""
