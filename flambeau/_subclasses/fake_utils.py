"""Checking fake results against real ones."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._subclasses.fake_tensor import FakeTensor, FakeTensorMode, MetadataMismatchError
from flambeau.utils import _pytree as pytree
from flambeau.utils._python_dispatch import TorchDispatchMode


def outputs_alias_inputs(outputs: Any, inputs: Any) -> bool:
    """Does a result share memory with an argument?"""
    held = {t.untyped_storage()._cdata for t in pytree.tree_leaves(inputs)
            if isinstance(t, Tensor)}
    return any(t.untyped_storage()._cdata in held for t in pytree.tree_leaves(outputs)
               if isinstance(t, Tensor))


def outputs_are_inputs(outputs: Any, inputs: Any) -> bool:
    """Is a result one of the arguments?"""
    held = {id(t) for t in pytree.tree_leaves(inputs) if isinstance(t, Tensor)}
    return any(id(t) in held for t in pytree.tree_leaves(outputs) if isinstance(t, Tensor))


def output_alias_each_other(outputs: Any) -> bool:
    """Do two results share memory?"""
    seen = [t.untyped_storage()._cdata for t in pytree.tree_leaves(outputs)
            if isinstance(t, Tensor)]
    return len(set(seen)) < len(seen)


def try_convert_fake_to_real(ten_list: list[Any]) -> list[Any]:
    """Zeros in the shapes of fake tensors."""
    return [flambeau.zeros(t.shape, dtype=t.dtype) if isinstance(t, FakeTensor) else t
            for t in ten_list]


def _check_fake_real_tensors(real_out: Tensor, fake_out: FakeTensor, context: str = "",
                             sizes: bool = True, strides: bool = False,
                             storage_offset: bool = True, requires_grad: bool = True) -> None:
    facts = {"shape": sizes, "stride": strides, "storage_offset": storage_offset,
             "requires_grad": requires_grad, "dtype": True}
    for fact, wanted in facts.items():
        if not wanted:
            continue
        a, b = getattr(real_out, fact), getattr(fake_out, fact)
        a, b = (a(), b()) if callable(a) else (a, b)
        if a != b:
            raise MetadataMismatchError(f"{context}: {fact} of the real result is {a}, of the fake "
                                        f"one {b}")


class CrossRefFakeMode(TorchDispatchMode):
    """Inside, each op also runs on fake tensors, and its results have to look alike."""

    def __init__(self, ignore_op_fn: Any = None, *, check_strides: bool = True,
                 check_aliasing: bool = True, only_check_ops_with_meta: bool = True):
        super().__init__()
        self.ignore_op_fn = ignore_op_fn or (lambda fn: False)
        self.check_strides, self.check_aliasing = check_strides, check_aliasing
        self.only_check_ops_with_meta = only_check_ops_with_meta

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        fake: Any = None
        checked = not self.ignore_op_fn(func) and not func._schema.is_mutable
        if checked:
            mode = FakeTensorMode()
            with mode:
                fake_args, fake_kwargs = pytree.tree_map_only(Tensor, mode.from_tensor,
                                                              (args, kwargs))
                try:
                    fake = func(*fake_args, **fake_kwargs)
                except RuntimeError:
                    checked = False         # it depends on values
        found = func(*args, **kwargs)
        if checked:
            for real, other in zip(pytree.tree_leaves(found), pytree.tree_leaves(fake)):
                if isinstance(real, Tensor):
                    _check_fake_real_tensors(real, other, str(func), strides=self.check_strides,
                                             storage_offset=False, requires_grad=False)
        return found


__all__ = ["CrossRefFakeMode", "output_alias_each_other", "outputs_alias_inputs",
           "outputs_are_inputs", "try_convert_fake_to_real"]
