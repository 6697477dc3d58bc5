"""The class of nested tensors."""
from flambeau.nested.tensors import NestedInt, NestedTensor

__all__ = ["NestedInt", "NestedTensor"]
