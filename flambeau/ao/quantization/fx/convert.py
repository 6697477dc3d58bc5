"""Observers become steps that quantise and dequantise; then steps between such are lowered.

A step whose arguments are just dequantised, and whose result is quantised next, becomes the
quantised op: its arguments lose the `dequantize`, its result the `quantize_per_tensor`.
"""
from __future__ import annotations

import copy
from operator import attrgetter
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.ao.nn.intrinsic import _FusedModule
from flambeau.ao.nn.quantized.modules.utils import _quantize_weight
from flambeau.ao.quantization import quantization_mappings as mappings
from flambeau.ao.quantization.fx import kinds
from flambeau.ao.quantization.fx.kinds import kind_of, only_user, relu_behind
from flambeau.ao.quantization.observer import _is_activation_post_process
from flambeau.ao.quantization.utils import get_qparam_dict
from flambeau.fx import GraphModule, Node
from flambeau.nn.modules.utils import _ntuple
from flambeau.ops.quantized import library as ops


class QuantizedGraphModule(GraphModule):
    """A graph of quantised ops; the packed weights of functions belong to its state."""

    def __init__(self, root: Any, graph: Any, class_name: str = "GraphModule"):
        super().__init__(root, graph, class_name)
        self._register_state_dict_hook(_save_packed_weights)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        for name in [name for name in vars(self) if name.startswith("_packed_weight_")]:
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(state_dict, prefix, *args)


def _save_packed_weights(module: Any, state_dict: Any, prefix: str, metadata: Any) -> None:
    for name, value in vars(module).items():
        if name.startswith("_packed_weight_"):
            state_dict[prefix + name] = value


class _Converter:
    def __init__(self, model: GraphModule, lower: bool):
        self.model, self.graph, self.lower = model, model.graph, lower
        self.modules = dict(model.named_modules(remove_duplicate=False))
        kept = model._quantization
        self.qconfigs, self.scopes, self.outputs = (
            kept["qconfigs"], kept["scopes"], kept["outputs"])
        self.made: dict[Node, Any] = {}     # each quantising step, and the observer it comes from
        self.dynamic: set[str] = set()      # steps whose arguments are quantised as they come

    def run(self) -> GraphModule:
        for node in list(self.graph.nodes):
            if node.op == "call_module" and _is_activation_post_process(self.modules[node.target]):
                self._replace_observer(node)
        for node in list(self.graph.nodes):
            kind = kind_of(node, self.modules) if node.name in self.qconfigs else None
            if kind is not None:
                getattr(self, f"_{kind}")(node)
        self._keep_outputs_quantized()
        self.graph.eliminate_dead_code()
        result = QuantizedGraphModule if self.lower else GraphModule
        return result(self.model, self.graph)

    # ---- quantising and dequantising ----------------------------------------------------------

    def _replace_observer(self, node: Node) -> None:
        observer, source = self.modules[node.target], node.args[0]
        if getattr(observer, "is_dynamic", False):
            self.dynamic.update(user.name for user in node.users)
            node.replace_all_uses_with(source)
        elif observer.dtype is flambeau.float16:
            raise NotImplementedError("convert_fx: activations of float16")
        elif observer.dtype in (flambeau.quint8, flambeau.qint8, flambeau.qint32):
            with self.graph.inserting_before(node):
                node.replace_all_uses_with(self._round_trip(source, observer))
        else:
            node.replace_all_uses_with(source)
        self.graph.erase_node(node)

    def _round_trip(self, source: Node, observer: Any) -> Node:
        if source.op == "get_attr":                     # a weight, which nobody has watched yet
            _run(observer, self._attribute(source))
        scale, zero = observer.calculate_qparams()
        prefix = self._prefix(source)
        parts = [self._buffer(f"{prefix}{name}_", value.to(dtype).reshape(())) for
                 name, value, dtype in (("scale", scale, flambeau.float),
                                        ("zero_point", zero, flambeau.int))] \
            if scale.numel() == 1 else None
        if parts is None:
            many = [self._buffer(f"{prefix}{name}_", value) for name, value in
                    (("scale", scale), ("zero_point", zero))]
            quantized = self.graph.call_function(flambeau.quantize_per_channel, (
                source, *many, observer.ch_axis, observer.dtype))
        else:
            quantized = self.graph.call_function(flambeau.quantize_per_tensor,
                                                 (source, *parts, observer.dtype))
        self.made[quantized] = observer
        return self.graph.call_method("dequantize", (quantized,))

    def _prefix(self, source: Node) -> str:
        """Where the scale is kept: named after the module that gives the number, or the one that
        takes it."""
        if source.name in self.qconfigs:
            path = source.target if source.op == "call_module" else self.scopes.get(source.name, "")
            return f"{path}_".replace(".", "_")
        if source.op == "get_attr":
            return "_"
        user = next(u for u in source.users if u.name in self.qconfigs or u.op == "call_module")
        takers = list(user.users) or [user]
        taker = takers[0]
        path = taker.target if taker.op == "call_module" else self.scopes.get(taker.name, "")
        return f"{path}_input_".replace(".", "_")

    def _buffer(self, prefix: str, value: Any) -> Node:
        number = 0
        while hasattr(self.model, f"{prefix}{number}"):
            number += 1
        name = f"{prefix}{number}"
        if isinstance(value, Tensor):
            self.model.register_buffer(name, value.detach().clone())
        else:
            setattr(self.model, name, value)
        return self.graph.get_attr(name)

    def _attribute(self, node: Node) -> Any:
        return attrgetter(node.target)(self.model)

    # ---- lowering -------------------------------------------------------------------------------

    def _sources(self, node: Node, args: list[Any]) -> list[Any] | None:
        """What the arguments were dequantised from; None if one was not, or there are none."""
        found = []
        for argument in args:
            if not isinstance(argument, Node):
                found.append(argument)
            elif argument.op == "call_method" and argument.target == "dequantize":
                found.append(argument.args[0])
            else:
                return None
        return found if any(isinstance(a, Node) for a in found) else None

    def _quantizer(self, node: Node) -> Node | None:
        """The step that alone uses a result, if it quantises."""
        user = only_user(node)
        return user if user in self.made else None

    def _replace(self, quantizer: Node, new: Node) -> None:
        quantizer.replace_all_uses_with(new)
        self.graph.erase_node(quantizer)

    def _module(self, node: Node) -> None:
        module = self.modules[node.target]
        module.qconfig = self.qconfigs[node.name]
        if node.name in self.dynamic:
            mapping = mappings.DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS
            target = mapping.get(type(module))
            if target is not None and self.lower:
                self._swap(node, target.from_float(module))
            return
        quantizer, sources = self._quantizer(node), self._sources(node, list(node.args[:1]))
        if quantizer is None or sources is None:
            return
        if not self.lower:
            self._refer(node, module)
            return
        module.activation_post_process = self.made[quantizer]
        mapping = mappings.DEFAULT_STATIC_QUANT_MODULE_MAPPINGS
        self._swap(node, mapping[type(module)].from_float(module))
        node.args = (*sources, *node.args[1:])
        self._replace(quantizer, node)

    def _refer(self, node: Node, module: Any) -> None:
        """The module with the numbers that its quantised weight would stand for."""
        watch = getattr(module, "weight_fake_quant", None)
        module = module.to_float() if watch is not None else module
        fused = isinstance(module, _FusedModule)
        inner = module[0] if fused else module
        target = mappings.DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS.get(type(inner))
        if target is None:
            return
        if watch is None:
            watch = self.qconfigs[node.name].weight()
            _run(watch, inner.weight)
        inner = target.from_float(inner, get_qparam_dict(watch))
        if fused:
            module[0] = inner
        self._swap(node, module if fused else inner)

    def _swap(self, node: Node, module: Any) -> None:
        for name in ("qconfig", "activation_post_process"):
            if hasattr(module, name):
                delattr(module, name)
        path, _, name = node.target.rpartition(".")
        setattr(self.model.get_submodule(path), name, module)

    def _table(self, node: Node) -> None:
        module = self.modules[node.target]
        module.qconfig = self.qconfigs[node.name]
        mapping = mappings.get_embedding_static_quant_module_mappings()
        if self.lower:
            self._swap(node, mapping[type(module)].from_float(module))

    def _shared(self, node: Node) -> None:
        joins = node.target in kinds.JOINS
        args = list(node.args[0]) if joins else list(node.args[:1])
        quantizer, sources = self._quantizer(node), self._sources(node, args)
        if not self.lower or quantizer is None or sources is None \
                or node.target in kinds.FLOATING:
            return
        node.args = (sources, *node.args[1:]) if joins else (*sources, *node.args[1:])
        self._replace(quantizer, node)

    _fixed = _shared

    def _binary(self, node: Node) -> None:
        relu = relu_behind(node, self.modules)
        quantizer = self._quantizer(relu or node)
        sources = self._sources(node, list(node.args[:2]))
        if not self.lower or quantizer is None or sources is None:
            return
        name = kinds.BINARY[node.target]
        if relu is not None and name == "matmul":
            return
        both = all(isinstance(a, Node) for a in sources)
        call = getattr(ops, name + ("_relu" if relu is not None else ""))
        with self.graph.inserting_before(quantizer):
            new = self.graph.call_function(
                call, (*sources, *(quantizer.args[1:3] if both else ())))
        self._replace(quantizer, new)

    def _weighted(self, node: Node) -> None:
        relu = relu_behind(node, self.modules)
        quantizer = self._quantizer(relu or node)
        sources = self._sources(node, list(node.args[:2]))
        if not self.lower or quantizer is None or sources is None:
            return
        x, weight = sources
        bias = node.args[2] if len(node.args) > 2 else node.kwargs.get("bias")
        if weight not in self.made or weight.args[0].op != "get_attr" or not (
                bias is None or bias.op == "get_attr"):
            return
        packed = self._packed(node, _quantize_weight(
            self._attribute(weight.args[0]).detach(), self.made[weight]),
            None if bias is None else self._attribute(bias).detach())
        name = node.target.__name__
        with self.graph.inserting_before(node):
            held = self._buffer("_packed_weight_", packed)
        node.target = getattr(ops, name + ("_relu" if relu is not None else ""))
        node.args, node.kwargs = (x, held, *quantizer.args[1:3]), {}
        for scale in quantizer.args[1:3]:
            node.prepend(scale)
        self._replace(quantizer, node)

    def _packed(self, node: Node, weight: Tensor, bias: Any) -> Any:
        names = kinds.WEIGHTED[node.target]
        given = {**dict(zip(names, node.args[3:])), **node.kwargs}
        if not names:
            return ops.linear_prepack(weight, bias)
        n = int(node.target.__name__[-2])
        usual = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
        values = [given.get(name, usual[name]) for name in names]
        return getattr(ops, f"conv{n}d_prepack")(
            weight, bias, *(_ntuple(n)(v) for v in values[:3]), values[3])

    def _function(self, node: Node) -> None:
        quantizer, sources = self._quantizer(node), self._sources(node, list(node.args[:1]))
        if not self.lower or quantizer is None or sources is None:
            return
        kwargs = {k: v for k, v in node.kwargs.items() if k not in (
            "inplace", "running_mean", "running_var", "use_input_stats", "momentum")}
        scale, zero = quantizer.args[1:3]
        with self.graph.inserting_before(quantizer):
            new = self.graph.call_function(
                kinds.FUNCTIONS[node.target], (*sources, *node.args[1:]),
                kwargs | {"output_scale": scale, "output_zero_point": zero})
        self._replace(quantizer, new)

    def _keep_outputs_quantized(self) -> None:
        output = self.graph.output_node()
        results = output.args[0] if isinstance(output.args[0], list | tuple) else [output.args[0]]
        for index in self.outputs:
            sources = self._sources(output, [results[index]])
            if sources is not None:
                output.replace_input_with(results[index], sources[0])


def _run(observer: Any, weight: Tensor) -> None:
    with flambeau.no_grad():
        observer(weight)


def convert(model: GraphModule, is_reference: bool = False, convert_custom_config: Any = None,
            is_standalone_module: bool = False, _remove_qconfig_flag: bool = True,
            qconfig_mapping: Any = None, backend_config: Any = None, is_decomposed: bool = False,
            keep_original_weights: bool = False) -> GraphModule:
    """The observed model with quantised ops; if `is_reference`, with float ops between steps that
    quantise and dequantise. `quantize_fx.convert_fx` looks at the settings."""
    for name, given in (("is_standalone_module", is_standalone_module),
                        ("qconfig_mapping", qconfig_mapping), ("backend_config", backend_config),
                        ("is_decomposed", is_decomposed),
                        ("keep_original_weights", keep_original_weights)):
        if given:
            raise NotImplementedError(f"torch.ao.quantization.fx.convert: {name}")
    if not hasattr(model, "_quantization"):
        raise AssertionError("convert_fx takes what prepare_fx or prepare_qat_fx has given")
    return _Converter(copy.deepcopy(model), not is_reference).run()


__all__ = ["convert"]
