"""How finely scales are shared, and how ranges map to integers: what affine observers are told."""
from __future__ import annotations

import enum
import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from flambeau import Tensor, nn


class PartialClass:
    """A class with some of its arguments, as `with_args` gives it."""

    def __init__(self, partial: Any):
        self.p = partial
        self.callable_args: dict[str, Any] = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        asked = {name: ask() for name, ask in self.callable_args.items() if name not in keywords}
        return self.p(*args, **asked, **keywords)

    def with_args(self, **kwargs: Any) -> PartialClass:
        """The same with further arguments."""
        return PartialClass(functools.partial(self, **kwargs))

    def with_callable_args(self, **kwargs: Any) -> PartialClass:
        """The same with arguments that are asked for, by calls, whenever one is made."""
        result = self.with_args()
        result.callable_args = {**self.callable_args, **kwargs}
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartialClass) and (
            self.p.func, self.p.args, self.p.keywords) == (
            other.p.func, other.p.args, other.p.keywords)

    def __hash__(self) -> int:
        return hash(self.p.func)

    def __repr__(self) -> str:
        return repr(self.p) + repr(self.callable_args)


class MappingType(enum.Enum):
    """Does the range lie around zero, or where the numbers are?

    `SYMMETRIC` takes the larger side for both, `SYMMETRIC_NO_CLIPPING_ERR` the scale with which
    neither side is clamped, `ASYMMETRIC` the range itself.
    """

    SYMMETRIC = 1
    SYMMETRIC_NO_CLIPPING_ERR = 2
    ASYMMETRIC = 3


class ZeroPointDomain(enum.Enum):
    """Is the zero point an integer, a float, or is there none?"""

    INT = 1
    FLOAT = 2
    NONE = 3


TorchAODType = enum.Enum("TorchAODType", "INT1 INT2 INT3 INT4 INT5 INT6 INT7", module=__name__)
TorchAODType.__doc__ = "Integers of one to seven bits."


@dataclass(frozen=True)
class Granularity:
    """How many numbers share a scale."""


@dataclass(frozen=True)
class PerBlock(Granularity):
    """One scale for each block of the size given."""

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """One scale for all."""


@dataclass(frozen=True)
class PerAxis(Granularity):
    """One scale for each index of dimension `axis`."""

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """One scale for each `group_size` numbers of a row."""

    group_size: int


class PerRow(Granularity):
    """One scale for each row: all but the last dimension."""


class PerToken(Granularity):
    """One scale for each token: all but the last dimension."""


def get_block_size(input_shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    """The shape of what shares a scale.

    >>> from flambeau.ao.quantization import PerAxis, get_block_size
    >>> get_block_size((4, 8), PerAxis(0))
    (1, 8)
    """
    if not isinstance(granularity, Granularity):
        raise AssertionError("Please provide an instance of Granularity, not subclass of it")
    if isinstance(granularity, PerTensor):
        return input_shape
    if isinstance(granularity, PerAxis):
        sizes = list(input_shape)
        sizes[granularity.axis] = 1
        return tuple(sizes)
    if isinstance(granularity, PerGroup):
        if len(input_shape) != 2:
            raise AssertionError("Expecting input shape dim to be 2 for per group quantization, "
                                 f"gotinput shape: {input_shape}")
        return 1, granularity.group_size
    if isinstance(granularity, PerRow | PerToken):
        return (1,) * (len(input_shape) - 1) + (input_shape[-1],)
    raise ValueError(f"Unsupported Granularity: {granularity}")


class AffineQuantizedObserverBase(ABC, nn.Module):
    """What observers of any granularity are; subclasses give `forward` and `calculate_qparams`."""

    def __init__(self, mapping_type: MappingType, target_dtype: Any, granularity: Granularity,
                 quant_min: int | None = None, quant_max: int | None = None,
                 eps: float | None = None, scale_dtype: Any = None, zero_point_dtype: Any = None,
                 preserve_zero: bool = True,
                 zero_point_domain: ZeroPointDomain | None = ZeroPointDomain.INT, **kwargs: Any):
        super().__init__()
        if granularity is None:
            raise AssertionError("granularity is None")
        self.mapping_type, self.target_dtype = mapping_type, target_dtype
        self.granularity = granularity
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.scale_dtype, self.zero_point_dtype = scale_dtype, zero_point_dtype
        self.preserve_zero, self.zero_point_domain = preserve_zero, zero_point_domain
        self.block_size: Any = None                 # both known after the first tensor
        self.original_dtype: Any = None

    @classmethod
    def with_args(cls, **kwargs: Any) -> PartialClass:
        """This class with some of its arguments."""
        return PartialClass(functools.partial(cls, **kwargs))

    @abstractmethod
    def forward(self, input: Tensor) -> Tensor:
        """Look at a tensor and give it back."""

    @abstractmethod
    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""

    def convert(self, model: Any, observer_node: Any) -> None:
        """Not offered: there are no ops of the namespace `pt2e_quant`."""
        raise NotImplementedError("AffineQuantizedObserverBase.convert: the ops of pt2e_quant")
