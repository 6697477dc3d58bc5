"""First-class dimensions: objects that stand for dimensions of tensors, in place of positions.

`x[i, j]` binds the dimensions of a tensor to `i` and `j`. Ops on tensors with bound dimensions run
for each index along them (`flambeau.vmap` does the work), and pair the dimensions of several
tensors by identity: where one has a dimension that another lacks, the other is repeated. `order`
makes bound dimensions positions again, and `sum(k)` and its kind reduce over them.

>>> from flambeau.functorch.dim import dims
>>> i, j, k = dims(3)
>>> a, b = torch.ones(2, 3), torch.ones(3, 4)
>>> (a[i, k] * b[k, j]).sum(k).order(i, j)
tensor([[3., 3., 3., 3.],
        [3., 3., 3., 3.]])

The design: Zachary DeVito, "first-class dimensions", 2022.
"""
from flambeau.functorch.dim.bound import Dim, DimensionBindError, DimList, Tensor, _Tensor
from flambeau.functorch.dim.dimension import DimensionMismatchError, dimlists, dims
from flambeau.functorch.dim.joining import cat, softmax, split, stack
from flambeau.functorch.dim.places import index

__all__ = ["Dim", "DimList", "DimensionBindError", "DimensionMismatchError", "Tensor", "_Tensor",
           "cat", "dimlists", "dims", "index", "softmax", "split", "stack"]
