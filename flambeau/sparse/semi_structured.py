"""Two of four values: a layout of GPUs. Without one, PyTorch's errors are all that there is."""
from __future__ import annotations

from typing import Any

from flambeau.core.tensor import Tensor


class SparseSemiStructuredTensor(Tensor):
    """A matrix of which two of each four values in a row are zero, as GPUs multiply it. There is
    no GPU."""

    _DEFAULT_ALG_ID = 0
    _FORCE_CUTLASS = _FUSE_TRANSPOSE = _PROTOTYPE_WARNING_SHOWN = False

    def to_dense(self) -> Tensor:
        """The matrix with its zeros."""
        raise NotImplementedError(f"{type(self).__name__}.to_dense: there is no GPU")

    def __new__(cls, shape: Any, packed: Any, meta: Any, packed_t: Any, meta_t: Any,
                compressed_swizzled_bitmask: Any, fuse_transpose_cusparselt: bool = False,
                alg_id_cusparselt: int = 0, requires_grad: bool = False) -> Any:
        raise NotImplementedError(f"{cls.__name__}: there is no GPU")

    @classmethod
    def from_dense(cls, original_tensor: Tensor, alg_id: int = 0) -> Any:
        """The matrix in this layout: to be chosen by a subclass."""
        raise NotImplementedError


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """The layout as CUTLASS has it."""

    BACKEND = "cutlass"

    @classmethod
    def from_dense(cls, original_tensor: Tensor, alg_id: int = 0) -> Any:
        """The matrix in this layout; there is no GPU for it."""
        _refuse(original_tensor)


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """The layout as cuSPARSELt has it."""

    BACKEND = "cusparselt"

    @classmethod
    def from_dense(cls, original_tensor: Tensor, alg_id: int = 0) -> Any:
        """The matrix in this layout; there is no GPU for it."""
        _refuse(original_tensor)


def _refuse(original_tensor: Tensor) -> None:
    raise RuntimeError(f"Error original_tensor.device= {original_tensor.device} is not supported! "
                       "Only CUDA tensors are currently supported.")


def to_sparse_semi_structured(original_tensor: Tensor, transposed: bool = False, alg_id: int = 0
                              ) -> Any:
    """A matrix in the layout of GPUs for two values of four: there is no GPU."""
    _refuse(original_tensor)


__all__ = ["SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT",
           "SparseSemiStructuredTensorCUTLASS", "to_sparse_semi_structured"]
