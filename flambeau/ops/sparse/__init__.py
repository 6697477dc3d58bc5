"""Tensors that keep only some of their elements, and the ops on them.

Whoever imports one of these modules gets all that make such tensors what they are, in this order.
"""
import importlib

for _name in ("tensors", "values", "parts", "calls", "create", "validate", "layouts"):
    importlib.import_module(f"flambeau.ops.sparse.{_name}")
