"""Graphs of a function and of its gradients: `aot_function`.

The function is traced together with its gradients, the joint graph is cut in two, and compilers,
functions of a graph and example inputs, make callables of the halves.

>>> import flambeau
>>> code = []
>>> def compiler(gm, inputs):
...     code.append([n.name for n in gm.graph.nodes if n.op == "call_function"])
...     return make_boxed_func(gm.forward)
>>> f = aot_function(lambda x: x.sin().sum(), compiler)
>>> x = flambeau.zeros(2, requires_grad=True)
>>> f(x).backward()
>>> x.grad, code[0]
(tensor([1., 1.]), ['sin', 'sum_1'])
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau._functorch._aot_autograd.descriptors import (
    BufferAOTInput,
    GradAOTOutput,
    ParamAOTInput,
    PlainAOTInput,
    PlainAOTOutput,
    TangentAOTInput,
)
from flambeau._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from flambeau.fx import GraphModule
from flambeau.fx.experimental.proxy_tensor import make_fx
from flambeau.utils import _pytree


def make_boxed_func(f: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    """A function of one list of arguments."""
    def boxed(args: list[Any]) -> Any:
        return f(*args)
    boxed._boxed_call = True            # type: ignore[attr-defined]
    return boxed


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose callables take one list."""
    def compile(gm: GraphModule, inputs: Any) -> Any:
        return make_boxed_func(compiler(gm, inputs))
    return compile


def _called(function: Any, args: list[Any]) -> tuple[Any, ...]:
    found = function(args) if getattr(function, "_boxed_call", False) else function(*args)
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


class _Traced:
    """The halves of one function, for arguments of one form."""

    def __init__(self, function: Callable[..., Any], flat: list[Any], options: dict[str, Any]):
        self.out_spec: Any = None
        self.wanted = [i for i, t in enumerate(flat) if isinstance(t, Tensor) and t.requires_grad]

        def forward(*primals: Any) -> list[Any]:
            found, self.out_spec = _pytree.tree_flatten(function(*primals))
            return found
        with flambeau.enable_grad():
            examples = [t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t
                        for t in flat]
            self.outputs = forward(*examples)
        self.differentiable = [i for i, t in enumerate(self.outputs)
                               if isinstance(t, Tensor) and t.requires_grad]
        tangents = [flambeau.ones_like(self.outputs[i]).detach() for i in self.differentiable]

        def joint(primals: list[Any], tangents: list[Tensor]) -> list[Any]:
            outputs = forward(*primals)
            if not tangents or not self.wanted:
                return outputs
            return [*outputs, *flambeau.autograd.grad(
                [outputs[i] for i in self.differentiable], [primals[i] for i in self.wanted],
                tangents, allow_unused=True)]
        names = [*(f"primals_{i + 1}" for i in range(len(flat))),
                 *(f"tangents_{i + 1}" for i in range(len(tangents)))]
        graph = make_fx(_named(joint, names, len(flat)), options["decompositions"])(
            *examples, *tangents)
        _rename(graph, names)
        cut = options["partition_fn"]
        self.joint = graph
        forward_graph, backward_graph = cut(graph, (examples, tangents),
                                            num_fwd_outputs=len(self.outputs))
        self.saved = len(_pytree.tree_leaves(forward_graph.graph.output_node().args[0])) \
            - len(self.outputs)
        self.fw = options["fw_compiler"](forward_graph, examples)
        self.bw = options["bw_compiler"](backward_graph, tangents) if self.wanted and tangents \
            else None

    def __call__(self, flat: list[Any]) -> Any:
        found = _function_of(self).apply(*flat)
        found = found if isinstance(found, tuple) else (found,)
        return _pytree.tree_unflatten(list(found[:len(self.outputs)]), self.out_spec)


def _named(joint: Callable[..., Any], names: list[str], count: int) -> Callable[..., Any]:
    """The joint function with one named parameter for each input."""
    text = ", ".join(names)
    return eval(f"lambda {text}: joint([{', '.join(names[:count])}], "
                f"[{', '.join(names[count:])}])", {"joint": joint})


def _rename(graph: GraphModule, names: list[str]) -> None:
    for node, name in zip(graph.graph.find_nodes(op="placeholder"), names):
        node.target = name
        node._rename(name)
    graph.recompile()


def _function_of(traced: _Traced) -> Any:
    class CompiledFunction(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            found = _called(traced.fw, list(args))
            count = len(traced.outputs)
            ctx.count = len(args)
            ctx.kept = [v for v in found[count:] if not isinstance(v, Tensor)]
            ctx.kinds = [isinstance(v, Tensor) for v in found[count:]]
            ctx.save_for_backward(*[v for v in found[count:] if isinstance(v, Tensor)])
            plain = [v for i, v in enumerate(found[:count]) if isinstance(v, Tensor)
                     and i not in traced.differentiable]
            ctx.mark_non_differentiable(*plain)
            return tuple(found[:count])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            tensors, others = iter(ctx.saved_tensors), iter(ctx.kept)
            saved = [next(tensors) if is_tensor else next(others) for is_tensor in ctx.kinds]
            tangents = [grads[i].contiguous() for i in traced.differentiable]
            found = iter(_called(traced.bw, [*saved, *tangents]))
            produced: list[Any] = [None] * ctx.count
            for i in traced.wanted:
                produced[i] = next(found)
            return tuple(produced)
    return CompiledFunction


def _form(flat: list[Any]) -> tuple[Any, ...]:
    return tuple((tuple(t.shape), t.dtype, t.requires_grad) if isinstance(t, Tensor) else t
                 for t in flat)


def aot_function(fn: Callable[..., Any], fw_compiler: Callable[..., Any],
                 bw_compiler: Callable[..., Any] | None = None,
                 partition_fn: Callable[..., Any] = default_partition,
                 decompositions: Any = None, num_params_buffers: int = 0,
                 keep_inference_input_mutations: bool = False,
                 inference_compiler: Any = None, *, dynamic: bool = False,
                 enable_log: bool = True, disable_functionalization: bool = False
                 ) -> Callable[..., Any]:
    """`fn` with its two passes run by what the compilers make of their graphs."""
    options = {"fw_compiler": fw_compiler, "bw_compiler": bw_compiler or fw_compiler,
               "partition_fn": partition_fn, "decompositions": decompositions}
    known: dict[Any, _Traced] = {}

    def returned(*args: Any, **kwargs: Any) -> Any:
        flat, spec = _pytree.tree_flatten((args, kwargs))
        key = _form(flat), str(spec), flambeau.is_grad_enabled()

        def on_leaves(*leaves: Any) -> Any:
            given, named = _pytree.tree_unflatten(list(leaves), spec)
            return fn(*given, **named)
        if key not in known:
            known[key] = _Traced(on_leaves, flat, options)
        return known[key](flat)
    return returned


def aot_module(mod: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
    """A module whose passes are run by what compilers make of their graphs."""
    def call(state: dict[str, Any], values: Any, named: Any) -> Any:
        return flambeau.func.functional_call(mod, state, values, named)
    compiled = aot_function(call, *args, **kwargs)

    class AOTModule(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *values: Any, **named: Any) -> Any:
            state = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
            return compiled(state, values, named)
    return AOTModule()


def aot_module_simplified(mod: nn.Module, args: Any, fw_compiler: Callable[..., Any],
                          bw_compiler: Callable[..., Any] | None = None,
                          partition_fn: Callable[..., Any] = default_partition,
                          decompositions: Any = None, **options: Any) -> Callable[..., Any]:
    """`aot_module` as a function of its inputs."""
    return aot_module(mod, fw_compiler, bw_compiler, partition_fn=partition_fn,
                      decompositions=decompositions)


@dataclass
class JointWithDescriptors:
    """A joint graph, and what its inputs and outputs are."""
    graph_module: GraphModule
    params_spec: list[str] = field(default_factory=list)
    buffers_spec: list[str] = field(default_factory=list)
    in_spec: Any = None
    out_spec: Any = None
    _traced: Any = None


def aot_export_joint_with_descriptors(stack: Any, mod: nn.Module, args: Any, kwargs: Any = None, *,
                                      decompositions: Any = None, **options: Any
                                      ) -> JointWithDescriptors:
    """The joint graph of a module's passes: parameters, buffers and arguments in, results and
    gradients out."""
    names = [n for n, _ in mod.named_parameters()]
    buffers = [n for n, _ in mod.named_buffers()]
    state = [*mod.parameters(), *mod.buffers()]
    flat, spec = _pytree.tree_flatten((args, kwargs or {}))

    def on_leaves(*leaves: Any) -> Any:
        held = dict(zip([*names, *buffers], leaves))
        given, named = _pytree.tree_unflatten(list(leaves[len(state):]), spec)
        return flambeau.func.functional_call(mod, held, given, named)
    traced = _Traced(on_leaves, [*state, *flat], {
        "fw_compiler": lambda gm, _: make_boxed_func(gm.forward),
        "bw_compiler": lambda gm, _: make_boxed_func(gm.forward),
        "partition_fn": default_partition, "decompositions": decompositions})
    _describe(traced, names, buffers)
    return JointWithDescriptors(traced.joint, names, buffers, spec, traced.out_spec, traced)


def _describe(traced: _Traced, names: list[str], buffers: list[str]) -> None:
    """Note on the nodes of the joint graph what they are."""
    graph = traced.joint.graph
    results = [PlainAOTOutput(i) for i in range(len(traced.outputs))]
    held: list[Any] = [*map(ParamAOTInput, names), *map(BufferAOTInput, buffers)]
    placeholders = graph.find_nodes(op="placeholder")
    tangents = [TangentAOTInput(results[i]) for i in traced.differentiable]
    arguments = len(placeholders) - len(held) - len(tangents)
    inputs = [*held, *map(PlainAOTInput, range(arguments)), *tangents]
    for node, what in zip(placeholders, inputs):
        node.meta["desc"] = what
    gradients = [GradAOTOutput(inputs[i]) for i in traced.wanted] if tangents else []
    graph.output_node().meta["desc"] = [*results, *gradients]


def aot_compile_joint_with_descriptors(jd: JointWithDescriptors, *, partition_fn: Any = None,
                                       fw_compiler: Any = None, bw_compiler: Any = None,
                                       **options: Any) -> Callable[..., Any]:
    """A function of parameters, buffers and arguments, flat, that runs the passes of the graph."""
    traced = jd._traced
    forward, backward = (partition_fn or default_partition)(
        jd.graph_module, None, num_fwd_outputs=len(traced.outputs))
    traced.fw = (fw_compiler or (lambda gm, _: make_boxed_func(gm.forward)))(forward, [])
    traced.bw = (bw_compiler or (lambda gm, _: make_boxed_func(gm.forward)))(backward, [])
    return lambda *flat: traced(list(flat))


__all__ = ["JointWithDescriptors", "aot_compile_joint_with_descriptors",
           "aot_export_joint_with_descriptors", "aot_function", "aot_module",
           "aot_module_simplified", "default_partition", "make_boxed_compiler", "make_boxed_func",
           "min_cut_rematerialization_partition"]
