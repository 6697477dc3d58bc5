"""Tensors with elements that do not count: `MaskedTensor`, and reductions with a mask.

>>> from flambeau import masked
>>> data = flambeau.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
>>> mask = flambeau.tensor([[True, False, True], [False, False, False]])
>>> masked.masked_tensor(data, mask).sum(1)
MaskedTensor(
  [  2.0000,       --]
)
>>> masked.softmax(data, 1, mask=mask)[0]
tensor([0.1192, 0.0000, 0.8808])
"""
from flambeau.masked import reductions as _ops
from flambeau.masked.maskedtensor import *
from flambeau.masked.reductions import *

__all__ = ["MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod",
           "cumsum", "is_masked_tensor", "log_softmax", "logaddexp", "logsumexp", "masked_tensor",
           "mean", "median", "norm", "normalize", "prod", "softmax", "softmin", "std", "sum",
           "var"]
