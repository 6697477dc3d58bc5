"""The backward of a stage: whole, or first the gradients of its inputs and later its weights'.

The gradient of a stage's input is what the stage before it waits for. Those of its weights nobody
waits for, and so a schedule can put them where a rank would be idle. Between the two the graph is
kept; the gradients at the nodes where paths to the weights leave those to the inputs
(`intermediates`) are remembered, so that nothing is computed twice.
"""
from __future__ import annotations

import collections
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import flambeau

from ...autograd.graph import GradientEdge, Node, get_gradient_edge
from ...nn.parameter import Parameter
from ._debug import map_debug_info

logger = logging.getLogger(__name__)

Tensor = flambeau.Tensor


def _get_grad_fn_or_grad_acc(t: Tensor) -> Node | None:
    """The node that made a tensor; of a leaf, the one that accumulates its gradient."""
    return get_gradient_edge(t).node if t.requires_grad else t.grad_fn


def _null_coalesce_accumulate(lhs: Any, rhs: Any) -> Any:
    """The sum of two gradients of which either may be missing."""
    if lhs is None or rhs is None:
        return rhs if lhs is None else lhs
    return flambeau.add(lhs, rhs)


# ---- the whole backward -------------------------------------------------------------------------

def stage_backward(stage_output: Any, output_grads: Any, input_values: Sequence[Any],
                   outputs_with_grads_idxs: list[int] | None = None) -> tuple[Tensor | None, ...]:
    """Run the backward of a stage from the gradients of its outputs; those of its inputs.

    `stage_output` and `output_grads` have the same structure; `outputs_with_grads_idxs` says which
    of the outputs count. What the inputs have in `grad` is taken away.

    >>> from flambeau.distributed.pipelining._backward import stage_backward
    >>> x = torch.ones(2, requires_grad=True)
    >>> stage_backward((x * 3,), (torch.ones(2),), (x,))
    (tensor([3., 3.]),)
    """
    pairs: list[tuple[Tensor, Tensor | None]] = []
    if outputs_with_grads_idxs is not None:
        stage_output = [stage_output[place] for place in outputs_with_grads_idxs]
        output_grads = [output_grads[place] for place in outputs_with_grads_idxs]
    try:
        _pair(stage_output, output_grads, pairs)
        flambeau.autograd.backward([output for output, _ in pairs],
                                   grad_tensors=[grad for _, grad in pairs])
    except Exception as error:
        raise RuntimeError(f"""
        Failed to run stage backward:
        Stage output: {map_debug_info(stage_output)}
        Output gradient: {map_debug_info(output_grads)}
        Input: {map_debug_info(input_values)}
        """) from error
    grads: list[Tensor | None] = []
    for value in input_values:
        tensor = isinstance(value, Tensor) and (value.is_leaf or value.retains_grad)
        grads.append(value.grad if tensor else None)
        if tensor:
            value.grad = None
    return tuple(grads)


def _pair(output: Any, grad: Any, pairs: list[tuple[Tensor, Tensor | None]]) -> None:
    """Collect the tensors of a structure that have a gradient to propagate, with this gradient."""
    if isinstance(output, Tensor):
        if not output.requires_grad:
            return
        if not (grad is None or isinstance(grad, Tensor)):
            raise AssertionError(f"expected a tensor or None as gradient, got {type(grad)}")
        pairs.append((output, grad))
    elif isinstance(output, (tuple, list)):
        if grad is None:
            return
        if not isinstance(grad, (tuple, list)) or len(grad) != len(output):
            raise AssertionError(f"expected {len(output)} gradients, got {map_debug_info(grad)}")
        for one_output, one_grad in zip(output, grad):
            _pair(one_output, one_grad, pairs)
    elif isinstance(output, dict):
        if grad is None:
            return
        if not isinstance(grad, dict) or set(grad) != set(output):
            raise AssertionError(f"expected gradients of {list(output)}, got "
                                 f"{map_debug_info(grad)}")
        for name in output:
            _pair(output[name], grad[name], pairs)


# ---- inputs first, weights later ----------------------------------------------------------------

def construct_reverse_graph(roots: list[Node]) -> dict[Node, list[Node]]:
    """For each node below the roots: the nodes whose gradients flow into it."""
    result: dict[Node, list[Node]] = collections.defaultdict(list)
    waiting = collections.deque(dict.fromkeys(root for root in roots if root is not None))
    seen = set(waiting)
    while waiting:
        node = waiting.popleft()
        for child, _ in node.next_functions:
            if child is None:
                continue
            result[child].append(node)
            if child not in seen:
                seen.add(child)
                waiting.append(child)
    return result


def reverse_closure(roots: Iterable[Node], target_nodes: set[Node],
                    reverse_edges_dict: dict[Node, list[Node]]) -> tuple[set[Node], set[Node]]:
    """All nodes above the roots, and the targets that bound them: what is above a target is not
    looked at."""
    closure: set[Node] = set()
    found: set[Node] = set()
    waiting: collections.deque[Node] = collections.deque()
    for root in roots:
        if root is not None and root not in closure:
            closure.add(root)
            waiting.append(root)
    while waiting:
        for above in reverse_edges_dict.get(waiting.popleft(), ()):
            if above in target_nodes:
                found.add(above)
            elif above not in closure:
                closure.add(above)
                waiting.append(above)
    return closure, found


def get_param_groups(inputs: list[Node], params: list[Node],
                     reverse_edges_dict: dict[Node, list[Node]]) -> list[dict[str, Any]]:
    """Groups of parameters with the nodes from which their gradients can be computed later.

    Those are the first nodes, from the parameters up, through which gradients also flow to the
    inputs. Parameters that share one of them are in one group.
    """
    above_inputs, _ = reverse_closure(inputs, set(), reverse_edges_dict)
    groups: list[dict[str, Any]] = []
    for param in params:
        _, bounds = reverse_closure([param], above_inputs, reverse_edges_dict)
        group = {"params": {param}, "intermediates": bounds}
        apart = []
        for other in groups:
            if other["intermediates"].isdisjoint(group["intermediates"]):
                apart.append(other)
            else:
                group = {key: other[key] | group[key] for key in group}
        groups = [*apart, group]
    return [{"params": group["params"], "intermediates": list(group["intermediates"])}
            for group in groups if group["intermediates"]]


def stage_backward_input(stage_outputs_or_loss: list[Tensor], output_grads: list[Tensor] | None,
                         input_values: list[Any], weights: Iterator[Parameter],
                         ) -> tuple[tuple[Tensor | None, ...], list[dict[str, Any]]]:
    """The gradients of a stage's inputs, and what `stage_backward_weight` needs for the others."""
    inputs = [value for value in input_values
              if isinstance(value, Tensor) and value.requires_grad]
    if not inputs:
        return (None,) * len(input_values), []
    if output_grads is None:
        output_grads = [flambeau.ones_like(output) for output in stage_outputs_or_loss]
    input_nodes = [_get_grad_fn_or_grad_acc(value) for value in inputs]
    params = [_get_grad_fn_or_grad_acc(weight) for weight in weights if weight.requires_grad]
    roots = [_get_grad_fn_or_grad_acc(output) for output in stage_outputs_or_loss]
    above = construct_reverse_graph([root for root in roots if root is not None])
    groups = get_param_groups(input_nodes, params, above)
    handles = [handle for group in groups for handle in _remember_grads(group)]
    try:
        grads = _autograd_grad_for_inputs(stage_outputs_or_loss, input_values, output_grads,
                                          retain_graph=True)
    finally:
        for handle in handles:
            handle.remove()
    above_inputs, _ = reverse_closure(input_nodes, set(), above)
    aside = [place for place, root in enumerate(roots)
             if root is not None and root not in above_inputs]
    if aside:                   # outputs that do not depend on the inputs
        groups.append({
            "params": set(params), "intermediates": [roots[place] for place in aside],
            "grads": [(None,) * stage_outputs_or_loss[place].output_nr + (output_grads[place],)
                      for place in aside]})
    for value, grad in zip(input_values, grads):
        if grad is not None:
            value.grad = grad if value.grad is None else value.grad + grad
    for output in stage_outputs_or_loss:
        if not output._is_view():
            output.detach_()            # the groups hold what of the graph is still needed
    return grads, groups


def _remember_grads(group: dict[str, Any]) -> list[Any]:
    """Hooks that keep, in the group, the gradients that flow into its intermediates."""
    group["grads"] = [None] * len(group["intermediates"])

    def hook(place: int) -> Any:
        def keep(grads: tuple[Tensor | None, ...]) -> None:
            group["grads"][place] = grads
        return keep

    return [node.register_prehook(hook(place))
            for place, node in enumerate(group["intermediates"])]


def _autograd_grad_for_inputs(outputs: Sequence[Tensor], inputs: Sequence[Any],
                              grad_outputs: Sequence[Tensor | None] | None = None,
                              retain_graph: bool = False,
                              allow_unused: bool = False) -> tuple[Tensor | None, ...]:
    """`autograd.grad` where some inputs need no gradient, or are no tensors: theirs are None."""
    wanted = [place for place, value in enumerate(inputs)
              if isinstance(value, Tensor) and value.requires_grad]
    result: list[Tensor | None] = [None] * len(inputs)
    if wanted:
        grads = flambeau.autograd.grad(outputs, [inputs[place] for place in wanted], grad_outputs,
                                       retain_graph=retain_graph, allow_unused=allow_unused)
        for place, grad in zip(wanted, grads):
            result[place] = grad
    return tuple(result)


def stage_backward_weight(weights: Iterator[Parameter], param_groups: list[dict[str, Any]],
                          retain_graph: bool = False) -> tuple[Tensor | None, ...]:
    """Add the gradients of the weights that `stage_backward_input` has left; what they are now."""
    weights = list(weights)  # type: ignore[assignment]
    owners = {_get_grad_fn_or_grad_acc(weight): weight
              for weight in weights if weight.requires_grad}
    for group in param_groups:
        edges, grads = _edges(group.pop("intermediates"), group.pop("grads"))
        params = list(group["params"])
        if not edges:
            continue
        found = flambeau.autograd.grad(edges, [GradientEdge(param, 0) for param in params], grads,
                                       retain_graph=retain_graph, allow_unused=True)
        for param, grad in zip(params, found):
            weight = owners.get(param)
            if weight is None or grad is None:
                continue
            weight.grad = grad if weight.grad is None else weight.grad + grad
    return tuple(weight.grad for weight in weights)


def _edges(nodes: list[Node], grads: list[tuple[Tensor | None, ...] | None]
           ) -> tuple[list[GradientEdge], list[Tensor]]:
    """The outputs of the nodes that have a gradient, and these gradients."""
    found = [(GradientEdge(node, place), grad) for node, received in zip(nodes, grads)
             for place, grad in enumerate(received or ()) if grad is not None]
    return [edge for edge, _ in found], [grad for _, grad in found]
