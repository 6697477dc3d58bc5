"""Operations on quantised tensors that no module stands for."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor, nn
from flambeau.ao.nn.float_functional import FloatFunctional, FXFloatFunctional, _Operations
from flambeau.ao.nn.quantized.modules.utils import _WithScale
from flambeau.ops.quantized import library as ops

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]


class QFunctional(_WithScale, _Operations):
    """Operations on quantised tensors; results have `scale` and `zero_point`."""

    _SHORT_NAME = "Functional"

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process: nn.Module = nn.Identity()

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def _call(self, name: str, *args: Any) -> Tensor:
        call: Any = getattr(ops, name)
        if name == "cat":
            return call(args[0], args[1], self.scale, self.zero_point)
        return call(*args, self.scale, self.zero_point)

    def _call_with_number(self, name: str, x: Tensor, y: float) -> Tensor:
        return getattr(ops, name)(x, y)

    def _watched(self, result: Tensor) -> Tensor:
        return self.activation_post_process(result)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """The quantised form of a `FloatFunctional` that was observed."""
        if type(mod) is not FloatFunctional:
            raise AssertionError("QFunctional.from_float expects an instance of FloatFunctional")
        return cls()._set_scale(mod.activation_post_process)
