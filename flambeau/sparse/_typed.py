"""`torch.sparse.FloatTensor` and its kind: they make sparse tensors of one type, and know their
instances."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.settings import warn_once
from flambeau.schema import errors
from flambeau.schema.arguments import bind
from flambeau.schema.parser import parse
from flambeau.schema.signature import function_signature


def _warn(given: str, instead: str) -> None:
    warn_once(f"torch.sparse.SparseTensor({given}) is deprecated.  Please use "
              f"torch.sparse_coo_tensor({instead}).")


_SCHEMAS = ("new(*, Device? device=None) -> Tensor",
            "new.entries(Tensor indices, Tensor values, *, Device? device=None) -> Tensor",
            "new.form(Tensor indices, Tensor values, int[] size, *, Device? device=None) -> Tensor",
            "new.size(int[] size, *, Device? device=None) -> Tensor")


def _refused(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    """The error of a call that fits none of the schemas."""
    signatures = [function_signature(parse(text)) for text in _SCHEMAS]
    said = [str(bind(signature, "new", args, kwargs)) for signature in signatures]
    return TypeError(errors.fits_none("new", signatures, said, args, kwargs))


def _make(dtype: Any, args: tuple[Any, ...], device: Any = None) -> Tensor:
    options: dict[str, Any] = {"dtype": dtype, "device": device}
    if len(args) in (2, 3) and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
        shape = "" if len(args) == 2 else ", shape"
        _warn(f"indices, values{shape}, *, device=",
              f"indices, values{shape}, dtype=, device=")
        return flambeau.sparse_coo_tensor(*args, device=device)
    if not args:
        _warn("", "(0,), dtype=")
        return flambeau.sparse_coo_tensor((0,), **options)
    if len(args) == 1 and isinstance(args[0], flambeau.Size):
        args = tuple(args[0])
    if all(isinstance(size, int) for size in args):
        _warn("shape, *, device=", "shape, dtype=, device=")
        return flambeau.sparse_coo_tensor(args, **options)
    if len(args) == 1 and isinstance(args[0], Sequence):
        raise TypeError("torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use "
                        "torch.sparse_coo_tensor() or construct a strided tensor and convert it to "
                        "sparse via to_sparse.")
    raise _refused(args, {} if device is None else {"device": device})


class _TensorType(type):
    """The type of such types."""

    dtype: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype \
            and instance.layout is flambeau.sparse_coo

    def __call__(cls, *args: Any, device: Any = None, **wrong: Any) -> Tensor:
        if wrong:
            raise _refused(args, wrong)
        return _make(cls.dtype, args, device)


TYPES = {f"{kind}Tensor": _TensorType(f"{kind}Tensor", (), {
    "__module__": "torch.sparse", "__doc__": f"Makes sparse tensors of type {dtype}.",
    "dtype": dtype, "layout": flambeau.sparse_coo, "is_sparse": True, "is_cuda": False})
    for kind, dtype in (
        ("BFloat16", flambeau.bfloat16), ("Byte", flambeau.uint8), ("Char", flambeau.int8),
        ("Double", flambeau.float64), ("Float", flambeau.float32), ("Half", flambeau.float16),
        ("Int", flambeau.int32), ("Long", flambeau.int64), ("Short", flambeau.int16))}
