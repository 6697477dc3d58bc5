"""Functional tensors of tensors, and back."""
from __future__ import annotations

from typing import Any

from flambeau import Tensor
from flambeau._subclasses.functional_tensor import FunctionalTensor


def to_fun(t: Any) -> Any:
    """A functional tensor with the value of a tensor; anything else as it is.

    >>> import flambeau
    >>> from_fun(to_fun(flambeau.ones(1)))
    tensor([1.])
    """
    if not isinstance(t, Tensor) or isinstance(t, FunctionalTensor):
        return t
    return FunctionalTensor.to_functional(t)


def from_fun(t: Any) -> Any:
    """The value of a functional tensor; anything else as it is."""
    return t.from_functional() if isinstance(t, FunctionalTensor) else t


def is_fun(t: Any) -> bool:
    """Is it a functional tensor?"""
    return isinstance(t, FunctionalTensor)


def sync_functional_tensor(t: Tensor) -> None:
    """Compute the value of a functional tensor anew."""
    if isinstance(t, FunctionalTensor):
        t.sync()


def has_data_mutation(t: Any) -> bool:
    """Was a functional tensor written to?"""
    return isinstance(t, FunctionalTensor) and t._memory.generation > 0


def has_same_metadata(t1: Tensor, t2: Tensor) -> bool:
    """Do two tensors look at memory in the same way?"""
    return (t1.shape == t2.shape and t1.stride() == t2.stride()
            and t1.storage_offset() == t2.storage_offset()
            and t1.is_conj() == t2.is_conj() and t1.is_neg() == t2.is_neg())


def was_tensor_updated(arg: Tensor, new_arg: Tensor) -> bool:
    """Is the one another tensor than the other?"""
    return arg is not new_arg


def assert_functional_graph(fx_g: Any) -> int:
    """How many copies into inputs a graph ends with; AssertionError if it writes otherwise."""
    count = 0
    for node in fx_g.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            if node.target._opname != "copy_" or node.args[0].op != "placeholder":
                raise AssertionError(f"aot_autograd expected to have an entirely functional graph, "
                                     f"but found {node.format_node()}")
            count += 1
    return count


__all__ = ["assert_functional_graph", "from_fun", "has_data_mutation", "has_same_metadata",
           "is_fun", "sync_functional_tensor", "to_fun"]
