"""Of which type `out=` must be: most ops cast their result to it, others say that they do not.

What they say stands in their declarations. `{found}` and `{out}` are the types of the result and of
`out=`, `{c_found}` and `{c_out}` the same as C has them, `{found_dtype}` and `{out_dtype}` as
Python does, `{name}` is the op. Where that depends on what is read, a function of the arguments,
the type of `out=` and that of the result gives the text.
"""
from __future__ import annotations

from typing import Any

from flambeau.core import devices
from flambeau.core.dtypes import dtype
from flambeau.core.op import Op
from flambeau.core.promotion import type_name

OUT_TYPE = "Expected out tensor to have dtype {c_found}, but got {c_out} instead"
FOUND_TYPE = "Found dtype {out} but expected {found}"
SCALAR_TYPE = "expected scalar type {found} but found {out}"
PYTHON_TYPE = "Expected out tensor to have dtype {found_dtype} but got {out_dtype} instead"
OF_VECTORS = "result dtype {out} does not match input dtype {found}"
OF_ROWS = "addmv input tensors must have the same dtype, but got {out}, {found}, and {found}"
NO_RESIZING = "cannot resize variables that require grad"
OUT_DEVICE = "Expected out tensor to have device {found}, but got {out} instead"
CASTABLE_RESULT = "{name}: Expected result to be safely castable from {found} dtype, but got " \
    "result with dtype {out}"


def python_on_meta(said: str) -> Any:
    """The text for ops whose rule for `meta` is written in Python in PyTorch."""
    return lambda read, out, found: PYTHON_TYPE if read[0]._device is devices.meta else said


def of_given_type(read: Any, out: Any, found: Any) -> str:
    """Where a `dtype`, the last argument, is given, `out` must be of it; else results are cast."""
    return OUT_TYPE if read[-1] is not None else ""


def _full_name(op: Op) -> str:
    space = op.namespace[0] if isinstance(op.namespace, tuple) else op.namespace
    return op.name if space in ("torch", None) else f"{space}.{op.name.removeprefix(f'{space}_')}"


def other_device(op: Op, out: Any, found: Any) -> RuntimeError:
    """What is said of an `out=` that is not on the device of the result."""
    name, declared = _full_name(op), (op.functional or op).declaration
    said = (declared.out_device if declared is not None else "") or (
        "Attempting to copy from device {found} to device {out}, but cross-device copies are not "
        "allowed!")
    return RuntimeError(said.format(name=name, out=out, found=found))


def refuse_gradients(op: Op, read: Any = ()) -> None:
    """Raise where a tensor of a call with `out=`, which has `read` these arguments, requires grad,
    if the op minds."""
    declared = (op.functional or op).declaration
    given = declared.out_reported_as if declared is not None else ""
    given = given(*read) if callable(given) else given
    if given is False or (not given and given is not None and not op.composite
                          and not op.is_differentiable):
        return
    c_name = f"{op.namespace}_{op.name}" if declared is None and op.namespace in (
        "linalg", "special") else op.name
    speaker = c_name if given == "" else given
    if speaker and " " in speaker:
        raise RuntimeError(speaker)
    raise RuntimeError(f"{speaker}(): functions with out=... arguments don't support automatic "
                       "differentiation, but one of the arguments requires grad." if speaker else
                       "a leaf Variable that requires grad is being used in an in-place operation.")


def can_cast(source: dtype, target: dtype) -> bool:
    """May a result of type `source` be stored into a tensor of type `target`?"""
    if source.kind in "cW":
        return target.kind in "cW"
    if source.kind == "f":
        return target.kind in "fc"
    return source.kind == "b" or target.kind != "b"


def check_out_type(op: Op, out: Any, found: Any, read: Any = ()) -> None:
    """Raise if a result of type `found`, which is not that of `out`, may not be stored there. The
    op has `read` those arguments."""
    name = _full_name(op)
    castable = can_cast(found, out.dtype)
    if name.startswith("fft."):                          # a real result is for a real tensor
        castable = castable and found.is_complex == out.dtype.is_complex
    elif name in ("any", "all"):
        castable = out.dtype.kind == "b" or out.dtype.name == "uint8"
    declared = (op.functional or op).declaration
    said, cast = (declared.out_type, declared.out_cast) if declared is not None else ("", "")
    if callable(said):
        said = said(read, out.dtype, found)
    elif out._device is devices.meta and said in (FOUND_TYPE, SCALAR_TYPE):
        said = ""                                       # kernels say this, and none runs
    if declared is not None and declared.out_any:
        return
    if not said and not castable:
        said = cast(read, out.dtype, found) if callable(cast) else cast
    if said:
        from flambeau.core.promotion import c_name
        kind = TypeError if said.startswith("torch.cat()") else RuntimeError
        raise kind(said.format(
            name=name, found=type_name(found),
            out=type_name(out.dtype), c_found=c_name(found), c_out=c_name(out.dtype),
            found_dtype=found, out_dtype=out.dtype))
    if not castable:
        raise RuntimeError(f"result type {type_name(found)} can't be cast to the desired output "
                           f"type {type_name(out.dtype)}")
