"""Keeping the order of nodes of a graph."""
from flambeau._dynamo._absent import COMPILER, absent_class, absent_function

preserve_node_ordering = absent_function(__name__, "preserve_node_ordering", COMPILER)
ControlDeps = absent_class(__name__, "ControlDeps", COMPILER)
__all__ = ["ControlDeps", "preserve_node_ordering"]
