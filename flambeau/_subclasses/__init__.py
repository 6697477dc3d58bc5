"""Tensors that stand for others: fake ones, and functional ones."""
from flambeau._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)
from flambeau._support.lazy.modules import lazy_package

__getattr__ = lazy_package(__name__, CrossRefFakeMode="fake_utils")
__all__ = ["CrossRefFakeMode", "DynamicOutputShapeException", "FakeTensor",
           "FakeTensorMode", "UnsupportedFakeTensorException"]
