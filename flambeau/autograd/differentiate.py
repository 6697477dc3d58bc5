"""`backward` and `grad`: what is differentiated, by what, and with which weights."""
from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau._support.own_methods import belong
from flambeau._support.settings import warn_once
from flambeau.core import dtypes
from flambeau.core.autograd.engine import Pass, current_pass, run
from flambeau.core.autograd.graph import (
    AccumulateGrad,
    differentiable_outputs,
    output_edges,
    take_over,
    takes_no_gradient,
)
from flambeau.core.calling import overrides
from flambeau.core.modes import interceptors
from flambeau.core.tensor import Tensor, gradient_edge, plain_types, tensor_types, wrap
from flambeau.core.type_info import preserve_format
from flambeau.ops.factory.create import ones_like, zeros_like
from flambeau.ops.view.conversion import cast


def as_sequence(value: Any) -> tuple[Any, ...]:
    if isinstance(value, Tensor) or hasattr(value, "output_nr"):
        return (value,)
    return tuple(value)


def edge_of(value: Any, what: str) -> Any:
    """The edge meant by a tensor or a GradientEdge."""
    if isinstance(value, Tensor):
        return gradient_edge(value)
    if not hasattr(value, "output_nr"):
        raise RuntimeError(f"all {what} have to be Tensors or GradientEdges, but got "
                           f"{type(value).__name__}")
    node, number = value[0], value[1]
    if isinstance(node, AccumulateGrad):
        return node.variable
    if node.part_of is not None:
        take_over(node)
    return output_edges(node)[differentiable_outputs(node)[number]]


def root_gradients(outputs: tuple[Any, ...], given: Any, batched: bool = False) -> list[Any]:
    """A gradient for each output: what the user gave, or 1 for a single element."""
    if given is None:
        given = (None,) * len(outputs)
    elif isinstance(given, Tensor):
        given = (given,)
    else:
        given = tuple(given)
    if not all(isinstance(o, Tensor) or hasattr(o, "output_nr") for o in outputs):
        raise AssertionError("Expected output to be a torch.Tensor")
    return [_root_gradient(o, g, batched) for o, g in zip(outputs, given)]


def as_flag(value: Any) -> bool:
    """An argument that the engine reads as a number, of a byte."""
    if type(value) is bool:
        return value
    number = operator.index(value)
    if not -2**63 <= number < 2**63:
        raise OverflowError("Python int too large to convert to C long")
    if not 0 <= number < 256:
        raise OverflowError("unsigned byte integer is "
                            f"{'greater than maximum' if number > 0 else 'less than minimum'}")
    return bool(number)


def check_count(outputs: tuple[Any, ...], gradients: list[Any]) -> None:
    """Raise if there are fewer gradients than outputs; further ones nobody looks at."""
    if len(gradients) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")


def _root_gradient(output: Any, grad: Any, batched: bool) -> Any:
    if not isinstance(output, Tensor):
        output = _stand_in(output)
    shape = output._array.shape
    if grad is None:
        if output.requires_grad:
            if output._array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs\n"
                                   f"The output has shape {list(shape)}: give its gradient.")
            if output._array.dtype not in dtypes.FLOATING:
                raise RuntimeError(f"grad can be implicitly created only for real scalar outputs "
                                   f"but got {output.dtype}")
            if output._array.dtype.kind in "cW":
                raise RuntimeError("grad can be implicitly created only for real scalar outputs "
                                   f"but got {output.dtype}")
            return ones_like(output, memory_format=preserve_format)
        return None
    if not isinstance(grad, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    found = grad._array.shape[1:] if batched else grad._array.shape
    if found != shape and batched:
        raise RuntimeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as "
            "the batch dimension. The sizes of the remaining dimensions are expected to match the "
            f"shape of corresponding output, but a mismatch was detected: grad_output[0] has a "
            f"shape of {grad.shape} and output[0] has a shape of {output.shape}. If you only want "
            "some tensors in `grad_output` to be considered batched, consider using vmap.")
    if found != shape:
        raise RuntimeError(f"Mismatch in shape: grad_output[0] has a shape of "
                           f"torch.Size({list(found)}) and output[0] has a shape of "
                           f"torch.Size({list(shape)}).")
    if (grad._array.dtype.kind in "cW") != (output._array.dtype.kind in "cW"):
        raise RuntimeError("For complex Tensors, both grad_output and output are required to have "
                           f"the same dtype. Mismatch in dtype: grad_output[0] has a dtype of "
                           f"{grad.dtype} and output[0] has a dtype of {output.dtype}.")
    return grad


def _stand_in(edge: Any) -> Tensor:
    """A tensor of the shape and type that the gradient of an edge has."""
    target = edge_of(edge, "outputs")
    if isinstance(target, Tensor):
        return target
    result = wrap(np.broadcast_to(np.zeros((), target.dtype), target.shape))
    result._edge = target
    return result


def collect_roots(outputs: tuple[Any, ...], grads: list[Any]) -> list[tuple[Any, Any]]:
    roots = []
    for i, (output, grad) in enumerate(zip(outputs, grads)):
        edge = edge_of(output, "outputs")
        if edge is None or (type(edge) in tensor_types and takes_no_gradient(edge)):
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a "
                               "grad_fn")
        if grad is None:
            continue
        if type(edge) not in tensor_types and grad._array.dtype != edge.dtype:
            grad = cast(grad, edge.dtype)
        roots.append((edge, grad))
    return roots


_PLAIN_FLAGS = frozenset({bool, type(None)})


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None,
             create_graph: bool = False, grad_variables: Any = None, inputs: Any = None) -> None:
    """Add the derivatives of `tensors` to the `grad` of the leaves they depend on.

    `grad_tensors` weights the elements of each tensor (1 for a single element by default);
    `retain_graph` (default: `create_graph`) keeps what the graph saved for another pass;
    `create_graph` records the pass itself; `inputs` limits which tensors get a gradient.
    """
    if create_graph:
        _warn_of_cycle()
    if inputs is None and grad_tensors is None and grad_variables is None \
            and type(tensors) in plain_types and not interceptors \
            and tensors._array.size == 1 and tensors._array.dtype.kind == "f" \
            and type(create_graph) is bool and type(retain_graph) in _PLAIN_FLAGS:
        edge = None if tensors._edge is None else gradient_edge(tensors)
        if edge is not None:
            own = tensors._array
            run([(edge, wrap(np.array(1, own.dtype, ndmin=own.ndim)))],
                create_graph if retain_graph is None else retain_graph, create_graph)
            return
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.",
                      FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both "
                               "passed to `backward()`. Please only use `grad_tensors`.")
        grad_tensors = grad_variables
    if inputs is not None:
        inputs = as_sequence(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = as_sequence(tensors)
    weights = root_gradients(outputs, grad_tensors)
    retain = as_flag(create_graph if retain_graph is None else retain_graph)
    create_graph = as_flag(create_graph)
    check_count(outputs, weights)
    roots = collect_roots(outputs, weights)
    if inputs is None:
        run(roots, retain, create_graph)
        return
    edges = []
    for target in inputs:
        if isinstance(target, Tensor):
            target.retain_grad()
        edges.append(edge_of(target, "inputs"))
    run(roots, retain, create_graph, edges, accumulate=True)


def _warn_of_cycle() -> None:
    """Warn, once a process, that gradients with a graph hold their tensors."""
    warn_once("Using backward() with create_graph=True will create a reference cycle between "
              "the parameter and its gradient which can cause a memory leak. We recommend "
              "using autograd.grad when creating the graph to avoid this. If you have to use "
              "this function, make sure to reset the .grad fields of your parameters to None "
              "after use to break the cycle and avoid the leak.")


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Any, ...]:
    """The derivatives of `outputs`, summed with weights `grad_outputs`, by each of `inputs`.

    Nothing is accumulated. An input that the outputs don't depend on is an error unless
    `allow_unused` (then None) or `materialize_grads` (then zeros). `is_grads_batched` says that
    `grad_outputs` carries a leading dimension: one result for each of its slices.

    >>> import flambeau
    >>> x = flambeau.tensor([1.0, 2.0], requires_grad=True)
    >>> grad((x ** 3).sum(), x)
    (tensor([ 3., 12.]),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when "
                         "materialize_grads=True, but got: allow_unused=False.")
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). "
                      "To accumulate gradient for other parts of the graph, please use "
                      "torch.autograd.backward.", FutureWarning, stacklevel=2)
    retain = create_graph if retain_graph is None else retain_graph
    outs, targets = as_sequence(outputs), as_sequence(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    relevant = (*outs, *targets)
    if overrides.has_torch_function(relevant):
        return overrides.handle_torch_function(
            grad, relevant, outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
            create_graph=create_graph, only_inputs=only_inputs, allow_unused=allow_unused,
            is_grads_batched=is_grads_batched, materialize_grads=materialize_grads)
    weights = root_gradients(outs, grad_outputs, is_grads_batched)
    retain, create_graph = as_flag(retain), as_flag(create_graph)
    check_count(outs, weights)
    roots = collect_roots(outs, [None] * len(outs) if is_grads_batched else weights)
    edges = []
    for target in targets:
        edge = edge_of(target, "inputs")
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(edge if not isinstance(target, Tensor) or edge is not target
                     or target._renewed is None else _renewed_edge(target, outs))
    if is_grads_batched:
        from flambeau.transforms.batching import vmap_backward
        found = vmap_backward(lambda g: run(collect_roots(outs, list(g)), True, create_graph, edges,
                                            accumulate=False), weights)
    else:
        found = run(roots, retain, create_graph, edges, accumulate=False)
    results = []
    for i, (target, g) in enumerate(zip(targets, found)):
        if g is None:
            if materialize_grads:
                if not isinstance(target, Tensor):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a "
                                       "GradientEdge")
                like = target
                g = zeros_like(like, requires_grad=create_graph
                                     and like._array.dtype in dtypes.FLOATING)
            elif not allow_unused:
                raise RuntimeError(f"The differentiated Tensor at index {i} appears to not have "
                                   "been used in the graph. Set allow_unused=True if this is the "
                                   "desired behavior.")
        results.append(g)
    return tuple(results)


def _renewed_edge(leaf: Tensor, outputs: tuple[Any, ...]) -> Tensor:
    """The edge of a leaf that `set_` has given a new accumulator: a graph from before leads to
    another, which is then what no gradient reaches."""
    roots = [(edge_of(output, "outputs"), None) for output in outputs]
    nodes = Pass([r for r in roots if r[0] is not None], True, False, False).reachable()
    used = any(node.order < leaf._renewed and any(e is leaf for e in node.edges)
               for node in nodes.values())
    return leaf if used or any(r[0] is leaf for r in roots) else wrap(leaf._array, True)


def queue_callback(callback: Callable[[], None]) -> None:
    """Run `callback` when the backward pass that is running has ended."""
    running = current_pass.get()
    if running is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    running.callbacks.append(callback)


belong(__name__.rpartition(".")[0], backward, grad)
