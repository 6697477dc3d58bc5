"""The cache of compiled code: there is none."""
from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from flambeau import Tensor
from flambeau._dynamo._absent import COMPILER, absent_class


class TensorMetadata(NamedTuple):
    """What a tensor looks like, for keys of caches."""
    dtype: Any
    shape: Any
    stride: Any
    device: Any
    layout: Any
    memory_format: Any
    storage_offset: int
    storage_bytes: int | None
    requires_grad: bool
    is_quantized: bool
    is_conj: bool
    is_neg: bool


def extract_tensor_metadata_for_cache_key(t: Tensor) -> TensorMetadata:
    """What a tensor looks like, without where it lies.

    >>> import flambeau
    >>> extract_tensor_metadata_for_cache_key(flambeau.ones(2)).shape
    torch.Size([2])
    """
    from flambeau.fx.passes.shape_prop import _extract_tensor_metadata
    found = _extract_tensor_metadata(t)
    return TensorMetadata(t.dtype, t.shape, found.stride, t.device, t.layout, found.memory_format,
                          0, None, t.requires_grad, t.is_quantized, t.is_conj(), t.is_neg())


def sha256_hash(data: bytes) -> str:
    """The hash of bytes, as letters."""
    import base64
    return base64.b32encode(hashlib.sha256(data).digest())[:51].decode().lower()


def code_hash(code: Any, extra: str = "") -> str:
    """The hash of code, as the name of its file."""
    text = code if isinstance(code, str) else code.decode()
    return "c" + sha256_hash((f"{text}||{extra}" if extra else text).encode())


FxGraphCache: Any = absent_class(__name__, "FxGraphCache", COMPILER)
PyCodeCache: Any = absent_class(__name__, "PyCodeCache", COMPILER)
CppCodeCache: Any = absent_class(__name__, "CppCodeCache", COMPILER)
AsyncCompile: Any = absent_class(__name__, "AsyncCompile", COMPILER)

__all__ = ["TensorMetadata", "code_hash", "extract_tensor_metadata_for_cache_key", "sha256_hash"]
