"""`ReduceOp`: how values of several processes become one."""
from __future__ import annotations

import enum
from typing import Any

from flambeau._support.c_functions import incompatible


class RedOpType(enum.IntEnum):
    """What a reduction does."""
    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


_Kind = RedOpType


class _Meta(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return type(value) is RedOpType or super().__instancecheck__(value)


class ReduceOp(metaclass=_Meta):
    """What `all_reduce` and its kind do with the values of all processes: `ReduceOp.SUM` …

    >>> ReduceOp(ReduceOp.MAX) == ReduceOp.MAX
    True
    """

    RedOpType = RedOpType
    SUM: _Kind
    AVG: _Kind
    PRODUCT: _Kind
    MIN: _Kind
    MAX: _Kind
    BAND: _Kind
    BOR: _Kind
    BXOR: _Kind
    PREMUL_SUM: _Kind

    def __init__(self, op: _Kind):
        if not isinstance(op, RedOpType):
            raise TypeError("ReduceOp(): incompatible constructor arguments: expected a "
                            f"ReduceOp.RedOpType, got {op!r}")
        self._op = op
        self._factor: Any = None

    @property
    def op(self) -> _Kind:
        """What the reduction does."""
        return self._op

    @property
    def factor(self) -> Any:
        """What `PREMUL_SUM` multiplies with, a number or a tensor."""
        if self._op is not RedOpType.PREMUL_SUM:
            raise RuntimeError("Only PREMUL_SUM supports accessing factor")
        return self._factor

    def __eq__(self, other: Any) -> bool:
        return self._op == getattr(other, "op", other)

    def __hash__(self) -> int:
        return int(self._op)


for _op in RedOpType:
    setattr(ReduceOp, _op.name, _op)
ReduceOp.__module__ = "torch.distributed.distributed_c10d"


class _reduce_op:
    """The older name of `ReduceOp`, which warns."""

    def __getattr__(self, name: str) -> Any:
        if name not in RedOpType.__members__:
            raise AttributeError(f"'_reduce_op' object has no attribute {name!r}")
        import warnings
        warnings.warn("`torch.distributed.reduce_op` is deprecated, please use "
                      "`torch.distributed.ReduceOp` instead", FutureWarning, stacklevel=2)
        return RedOpType[name]


reduce_op = _reduce_op()


def make_premul_sum(factor: Any) -> ReduceOp:
    """A sum of values that have been multiplied with `factor`."""
    made = ReduceOp(RedOpType.PREMUL_SUM)
    made._factor = factor
    return made


def op_type(op: Any) -> RedOpType:
    """The type of what is given as a reduction: a type itself, or an op of that type."""
    found = getattr(op, "op", op)
    if not isinstance(found, RedOpType):
        raise incompatible("", ["(self: torch._C._distributed_c10d.AllreduceOptions, arg0: "
                                "torch._C._distributed_c10d.ReduceOp) -> None"], [op], {})
    return found
