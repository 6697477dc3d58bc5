"""Tensors on `meta` in the form of others."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor


def is_sparse_coo(t: object) -> bool:
    """Is it sparse, with coordinates?"""
    return isinstance(t, Tensor) and t.layout is flambeau.sparse_coo


def is_sparse_compressed_layout(layout: Any) -> bool:
    """Is it a layout of sparse tensors with compressed indices?"""
    return layout in (flambeau.sparse_csr, flambeau.sparse_csc, flambeau.sparse_bsr,
                      flambeau.sparse_bsc)


def is_sparse_compressed(t: object) -> bool:
    """Is it sparse, with compressed indices?"""
    return isinstance(t, Tensor) and is_sparse_compressed_layout(t.layout)


def is_sparse_any(t: object) -> bool:
    """Is it sparse?"""
    return is_sparse_coo(t) or is_sparse_compressed(t)


def safe_is_leaf(t: Tensor) -> bool:
    """Is it a leaf of the graph?"""
    try:
        return t.is_leaf
    except RuntimeError:
        return False


def safe_grad(t: Tensor) -> Tensor | None:
    """The gradient, without the warning that it is not a leaf's."""
    import warnings
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The .grad attribute of a Tensor")
        return t.grad


def assert_eq(a: Any, b: Any) -> None:
    """AssertionError unless they are equal."""
    if a != b:
        raise AssertionError(f"{a} != {b}")


def assert_metadata_eq(assert_eq: Any, m1: Tensor, m2: Tensor, *, skip_symbolic: bool = False,
                       skip_leaf: bool = False) -> None:
    """`assert_eq` of all that two tensors are besides their values."""
    for fact in ("dtype", "shape", "layout", "is_conj", "is_neg", "stride", "storage_offset",
                 "requires_grad", *(() if skip_leaf else ("is_leaf",))):
        a, b = getattr(m1, fact), getattr(m2, fact)
        assert_eq(a() if callable(a) else a, b() if callable(b) else b)


class MetaConverter:
    """Makes tensors on `meta` of others, one of each."""

    def __init__(self, *, copy_data: bool = False):
        self.copy_data, self.hit, self.miss, self.arg_cnt = copy_data, 0, 0, 0
        self._of: dict[int, tuple[Tensor, Tensor]] = {}

    def successful(self) -> bool:
        """Has it made any?"""
        return self.hit > 0 and self.miss == 0

    def __call__(self, t: Any, shape_env: Any = None, *, callback: Any = None, source: Any = None,
                 symbolic_context: Any = None, trace: bool = True) -> Any:
        if not isinstance(t, Tensor):
            self.miss += 1
            return t
        if id(t) not in self._of:
            self._of[id(t)] = t, self._made(t)
        self.hit += 1
        made = self._of[id(t)][1]
        return made if callback is None else callback(lambda: made)

    def _made(self, t: Tensor) -> Tensor:
        """Views of one memory stay views of one memory."""
        if t._base is None or t.requires_grad or is_sparse_any(t):
            return t.to("meta")
        return self(t._base).as_strided(t.shape, t.stride(), t.storage_offset())


__all__ = ["MetaConverter", "assert_eq", "assert_metadata_eq", "is_sparse_any",
           "is_sparse_compressed", "is_sparse_coo", "safe_grad", "safe_is_leaf"]
