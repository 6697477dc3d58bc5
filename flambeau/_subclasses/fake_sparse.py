"""Sparse tensors without values: the layout and the shapes of a sparse tensor, and no entries."""
from __future__ import annotations

import re
import textwrap
from typing import Any

from flambeau._subclasses.fake_tensor import FakeTensor
from flambeau.core.tensor import Tensor, alias
from flambeau.dispatch.aten.subclass import install_torch_dispatch
from flambeau.ops.sparse.tensors import SparseTensor, to_meta


class FakeSparseTensor(FakeTensor):
    """A fake tensor that stands for a sparse one: `form` is a sparse tensor on `meta`."""

    form: SparseTensor

    @property
    def layout(self) -> Any:
        return self.form.layout

    @property
    def is_sparse(self) -> bool:
        return self.form.is_sparse

    @property
    def is_sparse_csr(self) -> bool:
        return self.form.is_sparse_csr

    def stride(self, dim: int | None = None) -> Any:
        return self.form.stride(dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self.form.is_contiguous(memory_format)

    def storage_offset(self) -> int:
        return 0

    def to_dense(self, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
        """A dense fake tensor of that shape."""
        return self.fake_mode.from_meta(self.form.to_dense(dtype), self.fake_device)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return textwrap.indent(_DEVICE.sub("", repr(self.form)), "    ").replace(
            "    tensor(", "FakeTensor(", 1)


_DEVICE = re.compile(r"device='meta',\s|, device='meta'")


def _of_form(name: str) -> Any:
    def method(self: FakeSparseTensor) -> Any:
        found = getattr(self.form, name)()
        return self.fake_mode.from_meta(found, self.fake_device) if isinstance(found, Tensor) \
            else found
    method.__name__ = name
    return method


for _name in ("sparse_dim", "dense_dim", "_dimI", "_dimV", "_nnz", "is_coalesced", "_indices",
              "_values", "indices", "values", "crow_indices", "col_indices", "ccol_indices",
              "row_indices"):
    setattr(FakeSparseTensor, _name, _of_form(_name))

FakeSparseTensor.__module__ = FakeTensor.__module__
FakeSparseTensor.__name__ = FakeSparseTensor.__qualname__ = "FakeTensor"
install_torch_dispatch(FakeSparseTensor, bare=lambda fake: fake.form)


def of_form(form: SparseTensor) -> FakeSparseTensor:
    """A fake tensor of that layout and those shapes, which `fake_tensor` says the mode of."""
    made: Any = alias(form._array, FakeSparseTensor)
    made.form = form
    return made


def form_of(tensor: SparseTensor) -> SparseTensor:
    """A sparse tensor without entries: its layout and shapes."""
    form = to_meta(tensor)
    form._edge = None
    return form


__all__ = ["FakeSparseTensor", "form_of", "of_form"]
