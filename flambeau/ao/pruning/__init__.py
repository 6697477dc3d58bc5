"""Pruning: which weights of a network are held at zero, and how many as training goes on.

A *sparsifier* multiplies tensors of a model by masks of zeros and ones, and decides at each `step`
anew what is zero; `squash_mask` makes the products the tensors. A *scheduler* changes the
sparsifier's level from step to step.

>>> from flambeau.ao.pruning import CubicSL, WeightNormSparsifier
>>> model = nn.Sequential(nn.Linear(8, 4))
>>> sparsifier = WeightNormSparsifier(sparsity_level=0.5)
>>> sparsifier.prepare(model, config=None)          # all linear layers
>>> sparsifier.step()
>>> int((model[0].weight == 0).sum())
16
>>> sparsifier.squash_mask()
>>> model
Sequential(
  (0): Linear(in_features=8, out_features=4, bias=True)
)
"""
from flambeau.ao.pruning._mappings import (
    get_dynamic_sparse_quantized_mapping,
    get_static_sparse_quantized_mapping,
)
from flambeau.ao.pruning.scheduler.base_scheduler import BaseScheduler
from flambeau.ao.pruning.scheduler.cubic_scheduler import CubicSL
from flambeau.ao.pruning.scheduler.lambda_scheduler import LambdaSL
from flambeau.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from flambeau.ao.pruning.sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier
from flambeau.ao.pruning.sparsifier.utils import (
    FakeSparsity,
    fqn_to_module,
    get_arg_info_from_tensor_fqn,
    module_to_fqn,
)
from flambeau.ao.pruning.sparsifier.weight_norm_sparsifier import WeightNormSparsifier

__all__ = ["BaseScheduler", "BaseSparsifier", "CubicSL", "FakeSparsity", "LambdaSL",
           "NearlyDiagonalSparsifier", "WeightNormSparsifier", "fqn_to_module",
           "get_arg_info_from_tensor_fqn", "get_dynamic_sparse_quantized_mapping",
           "get_static_sparse_quantized_mapping", "module_to_fqn"]
