"""What a slice of `vmap` cannot say, in PyTorch's words: it is any of them, and has no memory."""
from __future__ import annotations

from typing import Any

from flambeau.core import late_bound
from flambeau.core.modes import deriving, levels
from flambeau.core.tensor import Tensor


class WithoutMemory:
    """Members of tensors that would have to look at elements, or at the memory that holds them."""

    def _no_values(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("vmap: It looks like you're calling .item() on a Tensor. We don't "
                           "support vmap over calling .item() on a Tensor, please try to rewrite "
                           "what you're doing with other operations. If error is occurring "
                           "somewhere inside PyTorch internals, please file a bug report.")

    def _no_memory(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def _no_storage(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")

    def _get_data(self: Any) -> Tensor:
        stack = levels.get()
        if stack and hasattr(stack[-1], "randomness") and not deriving.get():   # a vmap
            raise RuntimeError("accessing `data` under vmap transform is not allowed")
        return late_bound.detach(self)

    def _set_data(self, value: Tensor) -> None:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")

    data = property(_get_data, _set_data)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using "
            "torch.autograd.functional.* APIs) inside of a function being transformed by a "
            "functorch transform. This is unsupported, please attempt to use the functorch "
            "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside "
            "of a function being transformed instead.")

    tolist = numpy = data_ptr = _no_memory
    storage = untyped_storage = __deepcopy__ = __reduce_ex__ = _no_storage
    item = __int__ = __float__ = __index__ = __complex__ = _no_values

    def __bool__(self) -> bool:
        raise RuntimeError("vmap: It looks like you're attempting to use a Tensor in some "
                           "data-dependent control flow. We don't support that yet, please file "
                           "an issue at https://github.com/pytorch/pytorch/issues .")
