"""Quantisation of networks: observers, which find scales and zero points, and modules that train
with rounded numbers. Converting a network to one of quantised modules is not offered.

>>> from flambeau.ao.quantization import default_weight_fake_quant
>>> fake = default_weight_fake_quant()
>>> weight = flambeau.tensor([-1.27, 0.004, 0.5], requires_grad=True)
>>> fake(weight).detach()
tensor([-1.2750,  0.0000,  0.4980])
"""
from flambeau.ao.quantization import fake_quantize as _fake_quantize
from flambeau.ao.quantization import observer as _observer
from flambeau.ao.quantization import qconfig as _qconfig

__all__ = [name for module in (_observer, _fake_quantize, _qconfig)
           for name, value in vars(module).items()
           if name[0] != "_" and (getattr(value, "__module__", "").startswith("flambeau.ao")
                                  or type(value).__name__ == "PartialClass")
           and name != "PartialClass"]
for _module in (_observer, _fake_quantize, _qconfig):
    globals().update({name: value for name, value in vars(_module).items() if name in __all__})
