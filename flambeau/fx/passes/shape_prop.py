"""`ShapeProp`: notes the shape and type of each value of a graph."""
from __future__ import annotations

from typing import Any, NamedTuple

import flambeau
from flambeau import Tensor, fx
from flambeau.fx.node import map_aggregate

_FORMATS = (flambeau.contiguous_format, flambeau.channels_last, flambeau.channels_last_3d)


class TensorMetadata(NamedTuple):
    """What a tensor looks like."""
    shape: flambeau.Size
    dtype: flambeau.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: flambeau.memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """What a tensor looks like."""
    memory_format = None
    if include_contiguity and not result.is_sparse:
        memory_format = next((f for f in _FORMATS if result.is_contiguous(memory_format=f)), None)
    qparams: dict[str, Any] = {}
    if result.is_quantized:
        qparams["qscheme"] = result.qscheme()
        if qparams["qscheme"] in (flambeau.per_tensor_affine, flambeau.per_tensor_symmetric):
            qparams["scale"], qparams["zero_point"] = result.q_scale(), result.q_zero_point()
        else:
            qparams["scale"] = result.q_per_channel_scales().tolist()
            qparams["zero_point"] = result.q_per_channel_zero_points().tolist()
            qparams["axis"] = result.q_per_channel_axis()
    stride = () if result.is_sparse else result.stride()
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, stride, memory_format,
                          result.is_quantized, qparams)


class ShapeProp(fx.Interpreter):
    """Runs a graph; `node.meta["tensor_meta"]` then says what each node's value looks like.

    With a `fake_mode`, no values are computed.

    >>> gm = fx.symbolic_trace(lambda x: x.flatten(1))
    >>> _ = ShapeProp(gm).propagate(flambeau.ones(2, 3, 4))
    >>> [node.meta["tensor_meta"].shape for node in gm.graph.nodes]
    [torch.Size([2, 3, 4]), torch.Size([2, 12]), torch.Size([2, 12])]
    """

    def __init__(self, gm: Any, fake_mode: Any = None):
        super().__init__(gm)
        if fake_mode is None:
            from flambeau._guards import detect_fake_mode
            fake_mode = detect_fake_mode()
        self.fake_mode, self.real_module = fake_mode, self.module
        if fake_mode is not None:
            from flambeau._dynamo.utils import deepcopy_to_fake_tensor
            self.fake_module = deepcopy_to_fake_tensor(self.module, fake_mode)

    def run_node(self, n: fx.Node) -> Any:
        """Run a node, and note what its value looks like."""
        try:
            if self.fake_mode is None:
                result = super().run_node(n)
            else:
                self.module = self.fake_module
                try:
                    with self.fake_mode:
                        result = super().run_node(n)
                finally:
                    self.module = self.real_module
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
                               ) from error
        found = []

        def look(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            found.append(value)
            return _extract_tensor_metadata(value)
        meta = map_aggregate(result, look)
        if found:
            n.meta["tensor_meta"] = meta
        if self.fake_mode is not None:
            n.meta["val"] = result
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on arguments."""
        if self.fake_mode is not None:
            args = tuple(self.fake_mode.from_tensor(a) if isinstance(a, Tensor) else a
                         for a in args)
        return self.run(*args)


__all__ = ["ShapeProp", "TensorMetadata"]
