"""`GraphPickler`: graph modules as bytes; meta data that cannot be pickled is left out."""
from __future__ import annotations

import dataclasses
import io
import pickle
from collections.abc import Callable
from typing import Any

from flambeau import Tensor
from flambeau._ops import OpOverload, OpOverloadPacket
from flambeau.fx import Graph, GraphModule, Node
from flambeau.fx.node import map_aggregate


def _ops_filter_safe(name: str) -> bool:
    """Ops that every process has."""
    return name.startswith(("torch.ops.aten", "torch.ops.prims", "torch.ops.prim"))


def _node_metadata_key_filter_safe(key: str) -> bool:
    """Entries of meta data that can be kept."""
    return key not in ("source_fn_stack", "nn_module_stack", "fwd_source_fn_stack")


@dataclasses.dataclass
class Options:
    """What may be in the bytes: names of ops, keys of meta data (None: all)."""
    ops_filter: Callable[[str], bool] | None = _ops_filter_safe
    node_metadata_key_filter: Callable[[str], bool] | None = _node_metadata_key_filter_safe
    ignore_raw_node: bool = False


class _Reference:
    """A node, by its position."""

    def __init__(self, index: int):
        self.index = index


@dataclasses.dataclass
class _GraphData:
    nodes: list[tuple[Any, ...]]
    codegen: Any
    state: dict[str, Any]
    name: str


class GraphPickler(pickle.Pickler):
    """Pickles graph modules: `dumps(module)` and `loads(bytes, fake_mode)`.

    >>> import flambeau
    >>> from flambeau.fx.experimental.proxy_tensor import make_fx
    >>> gm = make_fx(lambda x: x.sin() + 1)(flambeau.ones(2))
    >>> again = GraphPickler.loads(GraphPickler.dumps(gm), None)
    >>> again(flambeau.zeros(2))
    tensor([1., 1.])
    """

    def __init__(self, file: io.BytesIO, options: Options | None = None):
        super().__init__(file)
        self.options = options or Options()

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, GraphModule):
            return _module_from, (self._data(obj),)
        if isinstance(obj, (OpOverload, OpOverloadPacket)):
            name = f"torch.ops.{obj}"
            if self.options.ops_filter is not None and not self.options.ops_filter(name):
                raise RuntimeError(f"Unable to pickle non-standard op: {name}")
        if isinstance(obj, Tensor):
            from flambeau._subclasses.fake_tensor import is_fake
            if is_fake(obj):
                return _like, (tuple(obj.shape), tuple(obj.stride()), str(obj.dtype)[6:],
                               str(obj.device))
        return NotImplemented

    def _data(self, module: GraphModule) -> _GraphData:
        places = {node: i for i, node in enumerate(module.graph.nodes)}

        def refer(value: Any) -> Any:
            return _Reference(places[value]) if isinstance(value, Node) else value
        keep = self.options.node_metadata_key_filter or (lambda key: True)
        nodes = [(n.op, n.target, map_aggregate(n.args, refer), map_aggregate(n.kwargs, refer),
                  n.name, n.type, {k: v for k, v in n.meta.items() if keep(k) and _picklable(v)})
                 for n in module.graph.nodes]
        state = {k: v for k, v in module.__dict__.items()
                 if k in ("_parameters", "_buffers", "_modules", "training")
                 or k.startswith(("_tensor_constant", "_param_constant"))}
        return _GraphData(nodes, module.graph._codegen, state, type(module).__name__)

    @classmethod
    def dumps(cls, obj: object, options: Options | None = None) -> bytes:
        """An object as bytes."""
        with io.BytesIO() as stream:
            cls(stream, options).dump(obj)
            return stream.getvalue()

    @staticmethod
    def loads(data: bytes, fake_mode: Any) -> object:
        """The object; its fake tensors belong to `fake_mode`."""
        global _mode
        before, _mode = _mode, fake_mode
        try:
            return pickle.loads(data)
        finally:
            _mode = before


_mode: Any = None


def _picklable(value: Any) -> bool:
    from flambeau._subclasses.fake_tensor import is_fake
    from flambeau.utils import _pytree
    for leaf in _pytree.tree_leaves(value):
        if isinstance(leaf, Tensor) and is_fake(leaf):
            continue
        try:
            pickle.dumps(leaf)
        except Exception:     # whatever it is, it cannot be kept
            return False
    return True


def _like(shape: Any, strides: Any, dtype: str, device: str) -> Any:
    import flambeau
    from flambeau._subclasses.fake_tensor import FakeTensorMode
    with _mode or FakeTensorMode():
        return flambeau.empty_strided(shape, strides, dtype=getattr(flambeau, dtype),
                                      device=device)


def _module_from(data: _GraphData) -> GraphModule:
    from flambeau import nn
    holder = nn.Module()
    holder.__dict__.update(data.state)
    graph = Graph()
    made: list[Any] = []
    graph._codegen = data.codegen
    for op, target, args, kwargs, name, kind, meta in data.nodes:
        def node_of(value: Any) -> Any:
            return made[value.index] if isinstance(value, _Reference) else value
        node = graph.create_node(op, target, map_aggregate(args, node_of),
                                 map_aggregate(kwargs, node_of), name, kind)
        node.meta = dict(meta)
        made.append(node)
    return GraphModule(holder, graph, data.name)


__all__ = ["GraphPickler", "Options"]
