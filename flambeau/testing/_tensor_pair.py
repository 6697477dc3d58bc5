"""Two tensors, or what makes tensors, that are compared: attributes first, then values."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.testing._mismatch import Identifier, make_tensor_mismatch_msg
from flambeau.testing._pairs import ErrorMeta, Pair, get_tolerances


class TensorLikePair(Pair):
    """Two tensors, arrays or other values that `as_tensor` takes.

    `|actual - expected| <= atol + rtol * |expected|` must hold for each element.
    """

    def __init__(self, actual: Any, expected: Any, *, id: tuple[Any, ...] = (),
                 allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True,
                 check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 **other_parameters: Any):
        actual, expected = self._process_inputs(actual, expected, id=id,
                                                allow_subclasses=allow_subclasses)
        super().__init__(actual, expected, id=id, **other_parameters)
        self.rtol, self.atol = get_tolerances(actual, expected, rtol=rtol, atol=atol, id=id)
        self.equal_nan, self.check_device, self.check_dtype = equal_nan, check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def _process_inputs(self, actual: Any, expected: Any, *, id: tuple[Any, ...],
                        allow_subclasses: bool) -> tuple[Tensor, Tensor]:
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        if not related or (type(actual) is not type(expected) and not allow_subclasses):
            self._inputs_not_supported()
        tensors = self._to_tensor(actual), self._to_tensor(expected)
        for tensor in tensors:
            self._check_supported(tensor, id=id)
        return tensors

    def _to_tensor(self, tensor_like: Any) -> Tensor:
        if isinstance(tensor_like, Tensor):
            return tensor_like
        try:
            return flambeau.as_tensor(tensor_like)
        except Exception:
            self._inputs_not_supported()

    def _check_supported(self, tensor: Tensor, *, id: tuple[Any, ...]) -> None:
        if tensor.is_mkldnn:
            raise ErrorMeta(ValueError, f"Unsupported tensor layout {tensor.layout}", id=id)

    def compare(self) -> None:
        actual, expected = self.actual, self.expected
        self._compare_attributes(actual, expected)
        if "meta" not in (actual.device.type, expected.device.type):
            self._compare_values(*self._equalize_attributes(actual, expected))

    def _compare_attributes(self, actual: Tensor, expected: Tensor) -> None:
        both_strided = actual.layout is expected.layout is flambeau.strided
        checks: list[tuple[str, bool, Any]] = [
            ("shape", True, _shape),
            ("is_quantized", True, lambda t: t.is_quantized),
            ("qscheme()", actual.is_quantized, lambda t: t.qscheme()),
            ("layout", self.check_layout, lambda t: t.layout),
            ("device", self.check_device, lambda t: t.device),
            ("dtype", self.check_dtype, lambda t: t.dtype),
            ("stride()", self.check_stride and both_strided, lambda t: t.stride())]
        for name, wanted, read in checks:
            if wanted and read(actual) != read(expected):
                self._fail(AssertionError, f"The values for attribute '{name}' do not match: "
                           f"{read(actual)} != {read(expected)}.")

    def _equalize_attributes(self, actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
        """The tensors without history, and dense if their layouts differ."""
        actual, expected = actual.detach(), expected.detach()
        if actual.layout is not expected.layout:
            actual, expected = [t if t.layout is flambeau.strided else t.to_dense()
                                for t in (actual, expected)]
        return actual, expected

    def _compare_values(self, actual: Tensor, expected: Tensor) -> None:
        options: dict[str, Any] = {"rtol": self.rtol, "atol": self.atol,
                                   "equal_nan": self.equal_nan}
        if actual.is_quantized:
            self._compare_quantized_values(actual, expected, **options)
        elif actual.is_nested:
            for a, b in zip(actual.unbind(), expected.unbind()):
                self._compare_regular_values_close(a, b, **options)
        elif actual.layout is flambeau.sparse_coo:
            self._compare_sparse_coo_values(actual, expected, **options)
        elif actual.layout is not flambeau.strided:
            self._compare_sparse_compressed_values(actual, expected, **options)
        else:
            self._compare_regular_values_close(actual, expected, **options)

    def _compare_quantized_values(self, actual: Tensor, expected: Tensor, **options: Any) -> None:
        self._compare_regular_values_close(
            actual.dequantize(), expected.dequantize(),
            identifier=lambda name: f"Quantized {name.lower()}", **options)

    def _compare_sparse_coo_values(self, actual: Tensor, expected: Tensor, **options: Any) -> None:
        self._compare_counts(actual, expected, "COO", (
            ("sparse dimensions", lambda t: t.sparse_dim()), ("specified values", _entries)))
        self._compare_regular_values_equal(actual._indices(), expected._indices(),
                                           identifier="Sparse COO indices")
        self._compare_regular_values_close(actual._values(), expected._values(),
                                           identifier="Sparse COO values", **options)

    def _compare_sparse_compressed_values(self, actual: Tensor, expected: Tensor, **options: Any
                                          ) -> None:
        """Sparse tensors are close if the same elements are stored and these are close."""
        layout = str(actual.layout).removeprefix("torch.sparse_").upper()
        names = ("crow", "col") if actual.layout in (
            flambeau.sparse_csr, flambeau.sparse_bsr) else ("ccol", "row")
        self._compare_counts(actual, expected, layout, (("specified values", _entries),))
        for name in [f"{n}_indices" for n in names]:
            self._compare_regular_values_equal(
                getattr(actual, name)(), getattr(expected, name)(),
                identifier=f"Sparse {layout} {name}")
        self._compare_regular_values_close(actual.values(), expected.values(),
                                           identifier=f"Sparse {layout} values", **options)

    def _compare_counts(self, actual: Tensor, expected: Tensor, layout: str, counts: Any) -> None:
        for name, count in counts:
            if count(actual) != count(expected):
                self._fail(AssertionError, f"The number of {name} in sparse {layout} tensors does "
                           f"not match: {count(actual)} != {count(expected)}")

    def _compare_regular_values_equal(self, actual: Tensor, expected: Tensor, *,
                                      equal_nan: bool = False, identifier: Identifier = None
                                      ) -> None:
        self._compare_regular_values_close(actual, expected, rtol=0, atol=0, equal_nan=equal_nan,
                                           identifier=identifier)

    def _compare_regular_values_close(self, actual: Tensor, expected: Tensor, *, rtol: float,
                                      atol: float, equal_nan: bool, identifier: Identifier = None
                                      ) -> None:
        """Are the elements of dense tensors close, whatever their types?"""
        if actual.shape != expected.shape:
            self._fail(AssertionError, "The values for attribute 'shape' do not match: "
                       f"{actual.shape} != {expected.shape}.")
        common = _common_dtype(actual, expected)
        actual, expected = actual.to(common), expected.to(common)
        matches = flambeau.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if not bool(matches.all()):
            self._fail(AssertionError, make_tensor_mismatch_msg(
                actual, expected, matches, rtol=rtol, atol=atol, identifier=identifier))

    def extra_repr(self) -> Sequence[str]:
        return ("rtol", "atol", "equal_nan", "check_device", "check_dtype", "check_layout",
                "check_stride")


def _shape(tensor: Tensor) -> Any:
    if tensor.is_nested and tensor.layout is flambeau.strided:
        return [part.shape for part in tensor.unbind()]
    return tensor.shape


def _entries(tensor: Tensor) -> int:
    return tensor._nnz()


def _common_dtype(actual: Tensor, expected: Tensor) -> Any:
    """A type in which both can be subtracted."""
    common = actual.dtype if actual.dtype is expected.dtype else \
        flambeau.promote_types(actual.dtype, expected.dtype)
    if common.is_floating_point and common.itemsize == 1:
        return flambeau.float32
    return common if common.is_floating_point or common.is_complex or common is flambeau.bool \
        else flambeau.int64


__all__ = ["TensorLikePair"]
