"""`assert_close`: are two tensors, or two nests of them, equal within tolerances?

`|actual - expected| <= atol + rtol * |expected|` must hold for each element.
"""
from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import flambeau
from flambeau import Tensor

# By type: the relative and the absolute tolerance that are used if none are given.
TOLERANCES = {
    flambeau.float16: (1e-3, 1e-5), flambeau.bfloat16: (1.6e-2, 1e-5),
    flambeau.float32: (1.3e-6, 1e-5), flambeau.float64: (1e-7, 1e-7),
    flambeau.complex32: (1e-3, 1e-5), flambeau.complex64: (1.3e-6, 1e-5),
    flambeau.complex128: (1e-7, 1e-7),
}
TOLERANCES |= dict.fromkeys((flambeau.quint8, flambeau.quint2x4, flambeau.quint4x2, flambeau.qint8,
                             flambeau.qint32), TOLERANCES[flambeau.float32])
NUMBERS = (int, float, complex, np.number)


class Options(NamedTuple):
    """How to compare."""

    allow_subclasses: bool = True
    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = False
    check_device: bool = True
    check_dtype: bool = True
    check_layout: bool = True
    check_stride: bool = False


class Difference(Exception):
    """Two values differ; `path` says where in a nest of them."""

    def __init__(self, text: str, path: tuple[Any, ...], kind: type = AssertionError):
        self.text, self.path, self.kind = text, path, kind

    def error(self, msg: str | Callable[[str], str] | None) -> BaseException:
        text = self.text
        if self.path:
            text += "\n\nThe failure occurred for item " + "".join(f"[{p!r}]" for p in self.path)
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        return self.kind(text)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True,
                 rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
                 check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
                 check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """Raise AssertionError unless `actual` and `expected` are close.

    They may be tensors, numbers, arrays, None, or sequences and mappings of these. Without `rtol`
    and `atol` the tolerances follow from the dtype (1.3e-6 and 1e-5 for float32). `msg` replaces
    the message; a function gets the message and returns another.

    >>> import flambeau
    >>> torch.testing.assert_close(flambeau.tensor([1.0, 2.0]), flambeau.tensor([1.0, 2.0 + 1e-7]))
    >>> torch.testing.assert_close(1, 2)
    Traceback (most recent call last):
    AssertionError: Scalars are not equal!
    <BLANKLINE>
    Expected 2 but got 1.
    Absolute difference: 1
    Relative difference: 0.5
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError("Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                         f"{missing}.")
    options = Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype,
                      check_layout, check_stride)
    try:
        compare(actual, expected, options, ())
    except Difference as difference:
        raise difference.error(msg) from None


def assert_allclose(actual: Any, expected: Any, rtol: float | None = None,
                    atol: float | None = None, equal_nan: bool = True, msg: str = "") -> None:
    """The older form of `assert_close`, which does not compare dtypes and devices."""
    import warnings
    warnings.warn("`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed "
                  "in a future release. Please use `torch.testing.assert_close()` instead.",
                  FutureWarning, stacklevel=2)
    actual, expected = (v if isinstance(v, Tensor) else flambeau.as_tensor(v)
                        for v in (actual, expected))
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
                 check_dtype=False, check_stride=False, msg=msg or None)


def default_tolerances(*values: Any) -> tuple[float, float]:
    """The larger ones of the tolerances that go with the dtypes of `values`."""
    pairs = [TOLERANCES.get(v.dtype if isinstance(v, Tensor) else v, (0.0, 0.0)) for v in values]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


# ---- which comparison ------------------------------------


def compare(actual: Any, expected: Any, options: Options, path: tuple[Any, ...]) -> None:
    """Find the first difference, and raise it."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise Difference(f"The length of the sequences mismatch: {len(actual)} != "
                             f"{len(expected)}", path)
        for i, (a, b) in enumerate(zip(actual, expected)):
            compare(a, b, options, (*path, i))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        _compare_mappings(actual, expected, options, path)
    elif actual is None or expected is None:
        if actual is not expected:
            raise Difference(f"None mismatch: {actual} is not {expected}", path)
    elif all(isinstance(v, (bool, np.bool_)) for v in (actual, expected)):
        if bool(actual) is not bool(expected):
            raise Difference(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}", path)
    elif isinstance(actual, NUMBERS) and isinstance(expected, NUMBERS):
        _compare_numbers(actual, expected, options, path)
    else:
        _compare_tensors(*_as_tensors(actual, expected, options, path), options, path)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _compare_mappings(actual: Any, expected: Any, options: Options, path: Any) -> None:
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        raise Difference("The keys of the mappings do not match:\n"
                         f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                         f"Additional keys in the actual mapping: {sorted(additional, key=str)}",
                         path)
    for key in sorted(actual, key=str):
        compare(actual[key], expected[key], options, (*path, key))


def _as_tensors(actual: Any, expected: Any, options: Options, path: Any) -> tuple[Tensor, Tensor]:
    related = (isinstance(actual, type(expected)) or isinstance(expected, type(actual))) \
        if options.allow_subclasses else type(actual) is type(expected)
    try:
        if not related or isinstance(actual, (str, bytes, Mapping)) or _is_sequence(actual):
            raise TypeError
        first, second = (v if isinstance(v, Tensor) else flambeau.as_tensor(v)
                         for v in (actual, expected))
        return first, second
    except (TypeError, ValueError, RuntimeError):
        raise Difference("No comparison pair was able to handle inputs of type "
                         f"{type(actual)} and {type(expected)}.", path, TypeError) from None


# ---- numbers ------------------------------------


def _compare_numbers(actual: Any, expected: Any, options: Options, path: Any) -> None:
    actual, expected = (v.item() if isinstance(v, np.generic) else v for v in (actual, expected))
    if options.check_dtype and type(actual) is not type(expected):
        raise Difference(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
    rtol, atol = options.rtol, options.atol
    if rtol is None:
        kinds = {int: (0.0, 0.0), float: TOLERANCES[flambeau.float64],
                 complex: TOLERANCES[flambeau.complex128], bool: (0.0, 0.0)}
        pairs = [kinds[type(actual)], kinds[type(expected)]]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    if actual == expected or (options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    gap = abs(actual - expected)
    if cmath.isfinite(gap) and gap <= atol + rtol * abs(expected):
        return
    raise Difference(_scalar_text(actual, expected, rtol, atol), path)


def _scalar_text(actual: Any, expected: Any, rtol: float, atol: float) -> str:
    exact = rtol == 0 and atol == 0
    gap = abs(actual - expected)
    relative = gap / abs(expected) if expected != 0 else float("inf")
    allowed = ["", ""] if exact else [f" (up to {tol} allowed)" for tol in (atol, rtol)]
    return (f"Scalars are not {'equal' if exact else 'close'}!\n\n"
            f"Expected {expected} but got {actual}.\n"
            f"Absolute difference: {gap}{allowed[0]}\n"
            f"Relative difference: {relative}{allowed[1]}")


# ---- tensors ------------------------------------


def _compare_tensors(actual: Tensor, expected: Tensor, options: Options, path: Any) -> None:
    for tensor in (actual, expected):
        if tensor.is_mkldnn:
            raise ValueError(f"Unsupported tensor layout {tensor.layout}")
    _compare_attributes(actual, expected, options, path)
    if options.rtol is None:
        rtol, atol = default_tolerances(actual, expected)
    else:
        rtol, atol = options.rtol, options.atol
    if actual.device.type == "meta" or expected.device.type == "meta":
        return
    actual, expected = actual.detach(), expected.detach()
    if actual.layout is not flambeau.strided and actual.layout is expected.layout:
        _compare_sparse(actual, expected, rtol, atol, options.equal_nan, path)
        return
    title = "Quantized tensor-likes" if actual.is_quantized else "Tensor-likes"
    actual, expected = (t if t.layout is flambeau.strided else t.to_dense()
                        for t in (actual, expected))
    actual, expected = (t.dequantize() if t.is_quantized else t for t in (actual, expected))
    _compare_elements(actual, expected, rtol, atol, options.equal_nan, path, title)


def _compare_elements(actual: Tensor, expected: Tensor, rtol: float, atol: float,
                      equal_nan: bool, path: Any, title: str) -> None:
    """Are the elements of dense tensors close, whatever their types?"""
    if actual.shape != expected.shape:
        raise Difference(f"The values for attribute 'shape' do not match: {actual.shape} != "
                         f"{expected.shape}.", path)
    common = flambeau.promote_types(actual.dtype, expected.dtype) \
        if actual.dtype is not expected.dtype else actual.dtype
    if common.is_floating_point and common.itemsize == 1:
        common = flambeau.float32
    elif not (common.is_floating_point or common.is_complex or common is flambeau.bool):
        common = flambeau.int64
    actual, expected = actual.to(common), expected.to(common)
    matches = flambeau.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if not bool(matches.all()):
        raise Difference(_tensor_text(actual, expected, matches, rtol, atol).replace(
            "Tensor-likes", title), path)


def _compare_attributes(actual: Tensor, expected: Tensor, options: Options, path: Any) -> None:
    checks = [("shape", True, lambda t: t.shape),
              ("is_quantized", True, lambda t: t.is_quantized),
              ("qscheme()", actual.is_quantized, lambda t: t.qscheme()),
              ("layout", options.check_layout, lambda t: t.layout),
              ("device", options.check_device, lambda t: t.device),
              ("dtype", options.check_dtype, lambda t: t.dtype)]
    if actual.layout is flambeau.strided and expected.layout is flambeau.strided:
        checks.append(("stride()", options.check_stride, lambda t: t.stride()))
    for name, wanted, read in checks:
        if wanted and read(actual) != read(expected):
            raise Difference(f"The values for attribute '{name}' do not match: {read(actual)} != "
                             f"{read(expected)}.", path)


def _compare_sparse(actual: Tensor, expected: Tensor, rtol: float, atol: float, equal_nan: bool,
                    path: Any) -> None:
    """Sparse tensors are close if the same elements are stored and these are close."""
    layout = str(actual.layout).removeprefix("torch.sparse_").upper()
    title = f"Sparse {layout}"
    counts: list[tuple[str, Any]] = [("specified values", lambda t: t._nnz())]
    parts: list[tuple[str, Any]]
    if actual.layout is flambeau.sparse_coo:
        counts = [("sparse dimensions", lambda t: t.sparse_dim()), *counts]
        parts, values = [("indices", lambda t: t._indices())], "_values"
    else:
        names = ("crow", "col") if actual.layout in (
            flambeau.sparse_csr, flambeau.sparse_bsr) else ("ccol", "row")
        parts = [(f"{n}_indices", lambda t, n=n: getattr(t, f"{n}_indices")()) for n in names]
        values = "values"
    for name, count in counts:
        if count(actual) != count(expected):
            raise Difference(f"The number of {name} in sparse {layout} tensors does not match: "
                             f"{count(actual)} != {count(expected)}", path)
    for name, read in parts:
        _compare_elements(read(actual), read(expected), 0, 0, False, path, f"{title} {name}")
    _compare_elements(getattr(actual, values)(), getattr(expected, values)(), rtol, atol,
                      equal_nan, path, f"{title} values")


def _tensor_text(actual: Tensor, expected: Tensor, matches: Tensor, rtol: float,
                 atol: float) -> str:
    if actual.ndim == 0:
        return _scalar_text(actual.item(), expected.item(), rtol, atol)
    exact = rtol == 0 and atol == 0
    if actual.dtype is flambeau.bool:
        actual, expected = actual.to(flambeau.int64), expected.to(flambeau.int64)
    count, wrong = actual.numel(), int((~matches).sum())
    gap = (actual - expected).abs()
    gap = flambeau.where(matches, flambeau.zeros_like(gap), gap)
    relative = gap / expected.abs()
    relative = flambeau.where(matches, flambeau.zeros_like(relative), relative)
    lines = []
    for name, values, tolerance in (("absolute", gap, atol), ("relative", relative, rtol)):
        place = int(values.flatten().argmax())
        index = tuple(int(i) for i in np.unravel_index(place, tuple(values.shape)))
        allowed = "" if exact else f" (up to {tolerance} allowed)"
        lines.append(f"Greatest {name} difference: {values.flatten()[place].item()} at index "
                     f"{index}{allowed}")
    return (f"Tensor-likes are not {'equal' if exact else 'close'}!\n\n"
            f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})\n" + "\n".join(lines))
