"""What can be computed: one file a family, one declaration an op.

Each declaration puts its function into the public namespaces and, where torch has one, makes the
method of `Tensor`; `flambeau.core.op.table` holds them all as data.
"""

import importlib
from collections.abc import Callable
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.ops.late_methods import METHODS

# The families that nearly every program needs; the others are imported when one of their ops is
# first asked for, in this order (the likeliest first). Families that bring operators are common:
# Python looks for `__and__` on the class without asking anybody.
COMMON = (
    "pointwise.arithmetic", "pointwise.elementary", "pointwise.comparison", "pointwise.bitwise",
    "pointwise.rounding", "pointwise.conditional", "pointwise.complex", "view.conversion",
    "view.copying", "factory.from_data", "factory.create", "indexing.index", "indexing.slices",
    "view.join", "linalg.matmul", "python.methods", "python.members", "reduction.sums",
    "view.shape", "view.strided",
)
LATE = [
    "factory.ranges", "random.draws", "indexing.gather", "indexing.masked", "view.rearranging",
    "view.diagonal", "factory.legacy_types", "reduction.minmax", "nn.activation", "nn.rrelu",
    "nn.activation_functions", "nn.softmax", "reduction.statistics", "reduction.sort",
    "nn.dropout", "view.conjugate_views", "python.inquiry", "nn.embedding", "nn.embedding_bag",
    "spatial.convolve", "spatial.pool", "spatial.adaptive_pool", "nn.normalize",
    "nn.batch_norm", "loss.cross_entropy", "loss.elementwise", "loss.margins", "loss.functions",
    "nn.attention", "nn.attention_choice", "nn.transformer_layers", "spatial.padding",
    "reduction.scan",
    "reduction.searching", "linalg.added_products", "python.affine_graph", "linalg.products",
    "linalg.einsum", "python.differences", "reduction.histograms", "random.sampling",
    "python.facts", "spatial.pixel_shuffle", "view.memory", "nn.bilinear", "linalg.solvers",
    "linalg.decompositions", "linalg.eigenvalues", "linalg.lu", "linalg.inverses",
    "linalg.reflections", "loss.distance", "python.foreach", "fft.transforms", "linalg.ldl",
    "linalg.matrix_functions", "linalg.lowrank", "special.polynomials", "nn.recurrent",
    "spatial.resample", "spatial.grid_sampler", "view.scatter_views", "reduction.segments",
    "sparse.tensors", "special.functions", "fft.spectrogram", "factory.windows",
    "python.written", "quantized.tensors", "quantized.fake_quantize", "quantized.mkldnn",
    "quantized.matmul",
]
for _module in COMMON:
    importlib.import_module(f"flambeau.ops.{_module}")


def load(found: Callable[[], bool] = lambda: False) -> bool:
    """Import further families until `found()`; without it, all of them."""
    while LATE:
        importlib.import_module(f"flambeau.ops.{LATE.pop(0)}")
        if found():
            return True
    return found()


class LateMember:
    """A method that comes with a family which has not been imported yet: it stands in for itself.
    With a `__getattr__` of the class instead, every call of a method would be slower: Python looks
    one up and calls it in one step only where attributes are found in the common way."""

    __slots__ = ("family", "name")

    def __init__(self, name: str, family: str):
        self.name, self.family = name, family

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        importlib.import_module(self.family)
        if vars(Tensor)[self.name] is self:             # the family is just being imported
            raise AttributeError(f"'Tensor' object has no attribute '{self.name}'",
                                 name=self.name, obj=instance)
        return getattr(owner if instance is None else instance, self.name)


for _family, _names in METHODS.items():
    for _name in _names.split():
        if _name not in vars(Tensor):                   # else the family is there already
            setattr(Tensor, _name, LateMember(_name, _family))
