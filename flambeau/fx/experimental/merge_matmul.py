"""Products with the same right side as one product."""
from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.fx import Node, symbolic_trace
from flambeau.fx.passes.tools_common import legalize_graph


def split_result_tensors(result: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    """The rows of a product that belong to each of the left sides.

    >>> x = flambeau.arange(3.0)[:, None]
    >>> [len(part) for part in split_result_tensors(x, [x[:1], x[1:]])]
    [1, 2]
    """
    return flambeau.split(result, [x.shape[0] for x in inputs])


def may_depend_on(a: Node, b: Node, search_depth: int = 6) -> bool:
    """Does `a` need `b`, as far as a search of that depth tells? In doubt it does."""
    if a == b:
        return True
    if not a.all_input_nodes:
        return False
    return search_depth == 0 or any(may_depend_on(used, b, search_depth - 1)
                                    for used in a.all_input_nodes)


def are_nodes_independent(nodes: Sequence[Node]) -> bool:
    """Does none need another?"""
    return not any(may_depend_on(i, j) or may_depend_on(j, i)
                   for i, j in itertools.combinations(nodes, 2))


def merge_matmul(in_mod: nn.Module) -> Any:
    """The module as a graph in which products with one right side are one product.

    >>> class Two(nn.Module):
    ...     def forward(self, a, b, w):
    ...         return flambeau.matmul(a, w) + flambeau.matmul(b, w)
    >>> sum(node.target is flambeau.matmul for node in merge_matmul(Two()).graph.nodes)
    1
    """
    gm = symbolic_trace(in_mod)
    by_right: dict[Any, list[Node]] = {}
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.target is flambeau.matmul:
            right = node.args[1]
            key = right.target if right.op == "get_attr" else right
            by_right.setdefault(key, []).append(node)
    for products in by_right.values():
        if len(products) > 1 and are_nodes_independent(products):
            _merge(gm, products)
    gm.recompile()
    gm.graph.lint()
    return gm


def _merge(gm: Any, products: list[Node]) -> None:
    graph = gm.graph
    lefts, rights = zip(*[node.args for node in products])
    last, right = products[-1], rights[-1]
    if right.op == "get_attr":
        with graph.inserting_after(right):
            right = graph.get_attr(right.target)
    with graph.inserting_after(last):
        joined = graph.call_function(flambeau.cat, (list(lefts),), {})
    with graph.inserting_after(joined):
        product = graph.call_function(flambeau.matmul, (joined, right), {})
    with graph.inserting_after(product):
        parts = graph.call_function(split_result_tensors, (product, list(lefts)), {})
    for i, node in enumerate(products):
        with graph.inserting_after(parts):
            part = graph.call_function(operator.getitem, (parts, i), {})
        node.replace_all_uses_with(part)
        graph.erase_node(node)
    legalize_graph(gm)


__all__ = ["are_nodes_independent", "may_depend_on", "merge_matmul", "split_result_tensors"]
