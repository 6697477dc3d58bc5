"""`assert_close`: are two tensors, or two nests of them, equal within tolerances?

The nests are taken apart into pairs, each of the first kind that takes its two values; further
kinds are subclasses of `Pair`.

>>> class Words(Pair):
...     def __init__(self, actual, expected, **options):
...         self._check_inputs_isinstance(actual, expected, cls=str)
...         super().__init__(actual, expected, **options)
...     def compare(self):
...         if self.actual.lower() != self.expected.lower():
...             self._fail(AssertionError, f"{self.actual} and {self.expected} are other words")
>>> [e.msg for e in not_close_error_metas(["a", "b"], ["A", "C"], pair_types=(Words,))]
['b and C are other words']
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.testing._mismatch import make_scalar_mismatch_msg, make_tensor_mismatch_msg
from flambeau.testing._pairs import (
    BooleanPair,
    ErrorMeta,
    NonePair,
    NumberPair,
    ObjectPair,
    Pair,
    UnsupportedInputs,
    default_tolerances,
    get_tolerances,
)
from flambeau.testing._tensor_pair import TensorLikePair


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
    errors = not_close_error_metas(
        actual, expected, pair_types=(NonePair, BooleanPair, NumberPair, TensorLikePair),
        allow_subclasses=allow_subclasses, rtol=rtol, atol=atol, equal_nan=equal_nan,
        check_device=check_device, check_dtype=check_dtype, check_layout=check_layout,
        check_stride=check_stride)
    if errors:
        raise errors[0].to_error(msg)


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


def not_close_error_metas(actual: Any, expected: Any, *, pair_types: Any = (ObjectPair,),
                          sequence_types: Any = (Sequence,), mapping_types: Any = (Mapping,),
                          **options: Any) -> list[ErrorMeta]:
    """What differs, pair by pair. Values that cannot be compared raise an error."""
    __tracebackhide__ = True
    try:
        pairs = originate_pairs(actual, expected, pair_types=pair_types,
                                sequence_types=sequence_types, mapping_types=mapping_types,
                                **options)
    except ErrorMeta as error:
        raise error.to_error() from None
    found = []
    for pair in pairs:
        try:
            pair.compare()
        except ErrorMeta as error:
            found.append(error)
        except Exception as error:
            raise _unexpected(f"Comparing\n\n{pair}\n\n") from error
    return found


def originate_pairs(actual: Any, expected: Any, *, pair_types: Any,
                    sequence_types: Any = (Sequence,), mapping_types: Any = (Mapping,),
                    id: tuple[Any, ...] = (), **options: Any) -> list[Pair]:
    """The pairs that two nests consist of, each of the first of `pair_types` that takes them."""
    def inner(key: Any, a: Any, b: Any) -> list[Pair]:
        return originate_pairs(a, b, pair_types=pair_types, sequence_types=sequence_types,
                               mapping_types=mapping_types, id=(*id, key), **options)

    if all(isinstance(v, sequence_types) and not isinstance(v, str) for v in (actual, expected)):
        if len(actual) != len(expected):
            raise ErrorMeta(AssertionError, "The length of the sequences mismatch: "
                            f"{len(actual)} != {len(expected)}", id=id)
        return [p for i, (a, b) in enumerate(zip(actual, expected)) for p in inner(i, a, b)]
    if isinstance(actual, mapping_types) and isinstance(expected, mapping_types):
        return [p for key in _common_keys(actual, expected, id)
                for p in inner(key, actual[key], expected[key])]
    for kind in pair_types:
        try:
            return [kind(actual, expected, id=id, **options)]
        except UnsupportedInputs:
            continue
        except ErrorMeta:
            raise
        except Exception as error:
            raise _unexpected(f"Originating a {kind.__name__}() at item "
                              f"{''.join([f'[{i!r}]' for i in id])} with\n\n{actual!r}\n\nand\n\n"
                              f"{expected!r}\n\n") from error
    raise ErrorMeta(TypeError, "No comparison pair was able to handle inputs of type "
                    f"{type(actual)} and {type(expected)}.", id=id)


def _common_keys(actual: Any, expected: Any, id: tuple[Any, ...]) -> list[Any]:
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        raise ErrorMeta(AssertionError, "The keys of the mappings do not match:\n"
                        f"Missing keys in the actual mapping: {sorted(missing, key=str)}\n"
                        f"Additional keys in the actual mapping: {sorted(additional, key=str)}",
                        id=id)
    keys = list(actual)
    with contextlib.suppress(Exception):
        keys.sort()
    return keys


def _unexpected(doing: str) -> RuntimeError:
    return RuntimeError(doing + "resulted in the unexpected exception above. The code of a pair "
                        "should raise an expressive `ErrorMeta` instead.")


__all__ = ["BooleanPair", "ErrorMeta", "NonePair", "NumberPair", "ObjectPair", "Pair",
           "TensorLikePair", "UnsupportedInputs", "assert_allclose", "assert_close",
           "default_tolerances", "get_tolerances", "make_scalar_mismatch_msg",
           "make_tensor_mismatch_msg", "not_close_error_metas", "originate_pairs"]
