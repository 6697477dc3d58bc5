"""Watching a graph: which step has which `QConfig`, and where observers go."""
from __future__ import annotations

import re
from collections import Counter
from typing import Any

import flambeau
from flambeau import nn
from flambeau.ao.nn.intrinsic import _FusedModule
from flambeau.ao.quantization.fx import kinds
from flambeau.ao.quantization.fx.kinds import kind_of, relu_behind
from flambeau.fx import GraphModule, Node, Tracer

_INTEGERS = (flambeau.quint8, flambeau.qint8, flambeau.qint32)


class QuantizationTracer(Tracer):
    """Modules of this package are single steps; `scopes` says in which module each step stands."""

    def __init__(self, skipped_module_names: list[str], skipped_module_classes: list[type]):
        super().__init__()
        self.skipped_module_names = skipped_module_names
        self.skipped_module_classes = tuple(skipped_module_classes)
        self.scopes: dict[str, str] = {}
        self._path = [""]

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Is a call of this module one step?"""
        return (module_qualified_name in self.skipped_module_names
                or isinstance(m, self.skipped_module_classes)
                or super().is_leaf_module(m, module_qualified_name))

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        self._path.append(self.path_of_module(m))
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self._path.pop()

    def create_node(self, kind: str, target: Any, args: Any, kwargs: Any,
                    name: str | None = None, type_expr: Any = None) -> Node:
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        self.scopes[node.name] = self._path[-1]
        return node


class QConfigFinder:
    """Which `QConfig` a mapping has for a step."""

    def __init__(self, mapping: Any, model: nn.Module, scopes: dict[str, str]):
        self.mapping, self.scopes = mapping, scopes
        self.modules = dict(model.named_modules())
        self.seen: Counter[Any] = Counter()

    def __call__(self, node: Node) -> Any:
        kind = self._type(node)
        scope = self.scopes.get(node.name, "")
        inner = node.op == "call_module"
        place = (scope.rpartition(".")[0] if inner else scope, kind)
        index = self.seen[place]
        self.seen[place] += 1
        ordered = self.mapping.module_name_object_type_order_qconfigs
        if (*place, index) in ordered:
            return ordered[*place, index]
        path = node.target if inner else scope
        if not inner and kind in self.mapping.object_type_qconfigs:
            return self.mapping.object_type_qconfigs[kind]
        while True:
            found = self._of_module(path, kind if inner and path == node.target else None)
            if found is not self or not path:
                return self.mapping.global_qconfig if found is self else found
            path = path.rpartition(".")[0]

    def _type(self, node: Node) -> Any:
        if node.op != "call_module":
            return node.target
        module = self.modules[node.target]
        return type(module[0]) if isinstance(module, _FusedModule) else type(module)

    def _of_module(self, path: str, kind: Any) -> Any:
        """What is said of a module by name, by pattern, or by class; the finder itself if nothing
        is."""
        mapping = self.mapping
        if path and path in mapping.module_name_qconfigs:
            return mapping.module_name_qconfigs[path]
        for pattern, qconfig in mapping.module_name_regex_qconfigs.items():
            if path and re.match(pattern, path):
                return qconfig
        kind = kind or type(self.modules.get(path))
        return mapping.object_type_qconfigs.get(kind, self)


class _Watcher:
    """Puts observers into one graph."""

    def __init__(self, model: GraphModule, find: QConfigFinder, quantized_inputs: list[int]):
        self.model, self.graph, self.find = model, model.graph, find
        self.modules = dict(model.named_modules())
        self.observed: dict[Node, Node] = {}        # a step, and the observer of its result
        self.count = 0
        self.qconfigs: dict[str, Any] = {}
        self.given = [n for i, n in enumerate(
            n for n in self.graph.nodes if n.op == "placeholder") if i in quantized_inputs]

    def run(self) -> None:
        done: set[Node] = set()
        for node in list(self.graph.nodes):
            kind = kind_of(node, self.modules)
            if kind is None or node in done:
                continue
            relu = relu_behind(node, self.modules) if kind in ("binary", "weighted") else None
            step = [node] if relu is None else [node, relu]
            done.update(step)
            qconfig = self.find(step[-1])
            if qconfig is None:
                continue
            self.qconfigs.update((part.name, qconfig) for part in step)
            if kind == "table":
                continue
            activation = qconfig.activation()
            dtype = getattr(activation, "dtype", None)
            if getattr(activation, "is_dynamic", False) or dtype is flambeau.float16:
                if kind == "module":
                    self._watch_arguments(node, kind, qconfig)
            elif dtype in _INTEGERS or isinstance(activation, _reuse()):
                self._watch_all(node, step[-1], kind, qconfig)

    def _watch_all(self, node: Node, last: Node, kind: str, qconfig: Any) -> None:
        """Watch the arguments of a step, and its result or that of the ReLU behind it."""
        if kind == "shared" and not self._tensors(node, kind):
            return
        if isinstance(qconfig.activation(), _reuse()) and not any(
                a in self.observed or a in self.observed.values()
                for a in self._tensors(node, kind)):
            return                                  # of numbers that nobody watches
        observers = self._watch_arguments(node, kind, qconfig)
        if not observers:
            return                                  # the arguments come quantised
        alone = kind == "binary" and len(self._tensors(node, kind)) < 2
        if kind == "shared" or alone:
            if node.target in kinds.JOINS:
                for other in observers[1:]:
                    self._set(other.target, self.modules[observers[0].target])
            self._watch(last, self.modules[observers[0].target])
        else:
            self._watch(last, qconfig.activation())

    def _watch_arguments(self, node: Node, kind: str, qconfig: Any) -> list[Node]:
        found = []
        for n, argument in enumerate(self._tensors(node, kind)):
            make = qconfig.weight if kind == "weighted" and n == 1 else qconfig.activation
            if argument in self.given:
                continue
            if argument in self.observed.values():
                found.append(argument)
                continue
            if argument not in self.observed:
                with self.graph.inserting_after(argument):
                    self.observed[argument] = self._observer(argument, make())
            node.replace_input_with(argument, self.observed[argument])
            found.append(self.observed[argument])
        return found

    def _tensors(self, node: Node, kind: str) -> list[Node]:
        """The arguments that are to be quantised."""
        args = node.args[0] if node.target in kinds.JOINS and node.args else node.args
        count = {"binary": 2, "weighted": 2}.get(kind, 1)
        if node.target in kinds.JOINS:
            count = len(args)
        return [a for a in args[:count] if isinstance(a, Node)]

    def _watch(self, node: Node, observer: nn.Module) -> None:
        users = list(node.users)
        with self.graph.inserting_after(node):
            watching = self._observer(node, observer)
        for user in users:
            user.replace_input_with(node, watching)
        self.observed[node] = watching

    def _observer(self, node: Node, observer: nn.Module) -> Node:
        name = f"activation_post_process_{self.count}"
        self.count += 1
        self._set(name, observer)
        return self.graph.call_module(name, (node,))

    def _set(self, name: str, observer: nn.Module) -> None:
        self.model.add_module(name, observer)
        self.modules[name] = observer


def _reuse() -> type:
    from flambeau.ao.quantization.observer import ReuseInputObserver
    return ReuseInputObserver


def watch(model: GraphModule, find: QConfigFinder, custom: Any) -> GraphModule:
    """The traced model with observers; what `convert` needs is kept in `_quantization`."""
    watcher = _Watcher(model, find, custom.input_quantized_indexes)
    watcher.run()
    result = GraphModule(model, model.graph)
    result._quantization = {"qconfigs": watcher.qconfigs, "scopes": find.scopes,
                            "outputs": custom.output_quantized_indexes}
    return result


__all__: list[str] = []
