"""Two values that are compared: of which kind they are, and whether they agree.

>>> NumberPair(1, 1.0).compare()
>>> BooleanPair(1, True, id=())
Traceback (most recent call last):
flambeau.testing._pairs.UnsupportedInputs
"""
from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import flambeau
from flambeau import Tensor
from flambeau.testing._mismatch import make_scalar_mismatch_msg

# By type: the relative and the absolute tolerance that are used if none are given.
_DTYPE_PRECISIONS = {
    flambeau.float16: (1e-3, 1e-5), flambeau.bfloat16: (1.6e-2, 1e-5),
    flambeau.float32: (1.3e-6, 1e-5), flambeau.float64: (1e-7, 1e-7),
    flambeau.complex32: (1e-3, 1e-5), flambeau.complex64: (1.3e-6, 1e-5),
    flambeau.complex128: (1e-7, 1e-7),
}
_DTYPE_PRECISIONS |= dict.fromkeys(
    (flambeau.quint8, flambeau.quint2x4, flambeau.quint4x2, flambeau.qint8, flambeau.qint32),
    _DTYPE_PRECISIONS[flambeau.float32])


class ErrorMeta(Exception):
    """Two values differ, or cannot be compared: what error to raise, and `id`, the place of the
    values in a nest of them."""

    def __init__(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> None:
        super().__init__("If you are a user and see this message during normal operation please "
                         "file an issue.")
        self.type, self.msg, self.id = type, msg, id

    def to_error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error, with `msg` or what it makes of the text in place of the text."""
        text = self.msg
        if self.id:
            text += "\n\nThe failure occurred for item " + "".join([f"[{i!r}]" for i in self.id])
        if msg is not None:
            text = msg(text) if callable(msg) else msg
        return self.type(text)


class UnsupportedInputs(Exception):
    """A pair does not compare values of these types: others may."""


def default_tolerances(*inputs: Any, dtype_precisions: Any = None) -> tuple[float, float]:
    """The larger ones of the tolerances that go with the dtypes of `inputs`.

    >>> default_tolerances(flambeau.float32, flambeau.float16)
    (0.001, 1e-05)
    """
    table = _DTYPE_PRECISIONS if dtype_precisions is None else dtype_precisions
    dtypes = [v.dtype if isinstance(v, Tensor) else v for v in inputs]
    if unknown := [d for d in dtypes if not isinstance(d, flambeau.dtype)]:
        raise TypeError("Expected a torch.Tensor or a torch.dtype, but got "
                        f"{type(unknown[0])} instead.")
    pairs = [table.get(d, (0.0, 0.0)) for d in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def get_tolerances(*inputs: Any, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
                   ) -> tuple[float, float]:
    """The tolerances that are given, else those of the dtypes of `inputs`."""
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ErrorMeta(ValueError, "Both 'rtol' and 'atol' must be either specified or omitted, "
                        f"but got no {missing}.", id=id)
    return default_tolerances(*inputs) if rtol is None or atol is None else (rtol, atol)


class Pair:
    """Two values. The constructor of a kind raises UnsupportedInputs for others than its own;
    `compare` raises ErrorMeta if the values differ."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (),
                 **unknown_parameters: Any) -> None:
        self.actual, self.expected, self.id = actual, expected, id
        self._unknown_parameters = unknown_parameters

    @staticmethod
    def _inputs_not_supported() -> NoReturn:
        raise UnsupportedInputs

    @staticmethod
    def _check_inputs_isinstance(*inputs: Any, cls: Any) -> None:
        if not all(isinstance(v, cls) for v in inputs):
            Pair._inputs_not_supported()

    def _fail(self, type: type[Exception], msg: str, *, id: tuple[Any, ...] = ()) -> NoReturn:
        raise ErrorMeta(type, msg, id=id or getattr(self, "id", ()))

    def compare(self) -> None:
        """Raise ErrorMeta unless the values agree."""
        raise NotImplementedError(f"{type(self).__name__}.compare")

    def extra_repr(self) -> Sequence[Any]:
        """Names of attributes, or pairs of name and value, that `repr` shows."""
        return []

    def __repr__(self) -> str:
        shown = [("id", self.id), ("actual", self.actual), ("expected", self.expected),
                 *[(e, getattr(self, e)) if isinstance(e, str) else e for e in self.extra_repr()]]
        return f"{type(self).__name__}(\n" + "".join([f"    {k}={v!s},\n" for k, v in shown]) + ")"


class ObjectPair(Pair):
    """Any objects: they have to be equal."""

    def compare(self) -> None:
        try:
            equal = self.actual == self.expected
        except Exception as error:
            raise ErrorMeta(ValueError, f"{self.actual} == {self.expected} failed with:\n{error}.",
                            id=self.id) from error
        if not equal:
            self._fail(AssertionError, f"{self.actual} != {self.expected}")


class NonePair(Pair):
    """None, and something that should be None as well."""

    def __init__(self, actual: Any, expected: Any, **other_parameters: Any) -> None:
        if actual is not None and expected is not None:
            self._inputs_not_supported()
        super().__init__(actual, expected, **other_parameters)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"None mismatch: {self.actual} is not {self.expected}")


class BooleanPair(Pair):
    """Two booleans, Python's or NumPy's."""

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...],
                 **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return bool, np.bool_

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> Any:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_bool(actual, id=id), self._to_bool(expected, id=id)

    def _to_bool(self, bool_like: Any, *, id: tuple[Any, ...]) -> bool:
        if not isinstance(bool_like, bool | np.bool_):
            raise ErrorMeta(TypeError, f"Unknown boolean type {type(bool_like)}.", id=id)
        return bool(bool_like)

    def compare(self) -> None:
        if self.actual is not self.expected:
            self._fail(AssertionError, f"Booleans mismatch: {self.actual} is not {self.expected}")


class NumberPair(Pair):
    """Two numbers, Python's or NumPy's."""

    _TYPE_TO_DTYPE = {int: flambeau.int64, float: flambeau.float64, complex: flambeau.complex128}
    _NUMBER_TYPES = tuple(_TYPE_TO_DTYPE)

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (),
                 rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
                 check_dtype: bool = False, **other_parameters: Any) -> None:
        actual, expected = self._process_inputs(actual, expected, id=id)
        super().__init__(actual, expected, id=id, **other_parameters)
        dtypes = [dtype for value in (actual, expected)
                  for kind, dtype in self._TYPE_TO_DTYPE.items() if isinstance(value, kind)]
        self.rtol, self.atol = get_tolerances(*dtypes, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_dtype = equal_nan, check_dtype

    @property
    def _supported_types(self) -> tuple[type, ...]:
        return *self._NUMBER_TYPES, np.number

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...]) -> Any:
        self._check_inputs_isinstance(actual, expected, cls=self._supported_types)
        return self._to_number(actual, id=id), self._to_number(expected, id=id)

    def _to_number(self, number_like: Any, *, id: tuple[Any, ...]) -> Any:
        if isinstance(number_like, np.number):
            return number_like.item()
        if not isinstance(number_like, self._NUMBER_TYPES):
            raise ErrorMeta(TypeError, f"Unknown number type {type(number_like)}.", id=id)
        return number_like

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        if self.check_dtype and type(actual) is not type(expected):
            self._fail(AssertionError,
                       f"The (d)types do not match: {type(actual)} != {type(expected)}.")
        if actual == expected:
            return
        if self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
            return
        gap = abs(actual - expected)
        if not (cmath.isfinite(gap) and gap <= self.atol + self.rtol * abs(expected)):
            self._fail(AssertionError, make_scalar_mismatch_msg(actual, expected, rtol=self.rtol,
                                                                atol=self.atol))

    def extra_repr(self) -> Sequence[str]:
        return "rtol", "atol", "equal_nan", "check_dtype"


__all__ = ["BooleanPair", "ErrorMeta", "NonePair", "NumberPair", "ObjectPair", "Pair",
           "UnsupportedInputs", "default_tolerances", "get_tolerances"]
