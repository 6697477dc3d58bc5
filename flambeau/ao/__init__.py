"""Architecture optimisation: networks of quantised numbers, and what turns networks into such.

>>> import flambeau
>>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
>>> flambeau.ao.quantization.quantize_dynamic(model)
Sequential(
  (0): DynamicQuantizedLinear(in_features=4, out_features=8, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
  (1): ReLU()
  (2): DynamicQuantizedLinear(in_features=8, out_features=2, dtype=torch.qint8, qscheme=torch.per_tensor_affine)
)
"""  # noqa: E501
from flambeau._support.lazy.modules import lazy_modules

__all__ = ["nn", "pruning", "quantization"]
__getattr__ = lazy_modules(__name__, *__all__)
