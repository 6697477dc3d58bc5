"""Tensors that stand for others: fake ones, and functional ones."""
from flambeau._lazy import lazy_package
from flambeau._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

__getattr__ = lazy_package(__name__, CrossRefFakeMode="fake_utils")
__all__ = ["CrossRefFakeMode", "DynamicOutputShapeException", "FakeTensor",
           "FakeTensorMode", "UnsupportedFakeTensorException"]
