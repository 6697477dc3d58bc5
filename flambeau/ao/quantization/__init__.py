"""Quantisation of networks: observers, which find scales and zero points; modules that train with
rounded numbers; and what swaps modules for such as compute with integers.

>>> from flambeau.ao.quantization import default_weight_fake_quant
>>> fake = default_weight_fake_quant()
>>> weight = flambeau.tensor([-1.27, 0.004, 0.5], requires_grad=True)
>>> fake(weight).detach()
tensor([-1.2750,  0.0000,  0.4980])
"""
import importlib as _importlib
from typing import Any as _Any

_MODULES = ("observer", "fake_quantize", "stubs", "quant_type", "qconfig", "qconfig_mapping",
            "quantization_mappings", "fuser_method_mappings", "fuse_modules", "quantize",
            "quantize_jit")
_loaded = [_importlib.import_module(f"{__name__}.{_name}") for _name in _MODULES]


def _is_public(name: str, value: _Any) -> bool:
    return name[0] != "_" and not name.isupper() and (
        getattr(value, "__module__", "").startswith(__name__)
        or type(value).__name__ in ("PartialClass", "QConfig")
        or name in ("ObserverOrFakeQuantize", "QConfigAny"))


_found = {_name: _value for _module in _loaded for _name, _value in vars(_module).items()
          if _is_public(_name, _value)}
globals().update(_found)


def default_eval_fn(model: _Any, calib_data: _Any) -> None:
    """Run the model on pairs of data and target: what `quantize` may be given."""
    for data, _ in calib_data:
        model(data)


_CONFIGURATIONS = ("default_dynamic_qconfig", "default_qat_qconfig", "default_qconfig",
                   "float16_dynamic_qconfig", "float_qparams_weight_only_qconfig")
__all__ = sorted({"default_eval_fn", "observer", *_CONFIGURATIONS, *(       # no others of its kind
    name for name, value in _found.items() if type(value).__name__ != "QConfig")} - {
        "PartialClass", "calculate_qmin_qmax", "fuse_known_modules", "get_qparam_dict",
        "make_room", "middle_of", "scale_and_zero_point"})
