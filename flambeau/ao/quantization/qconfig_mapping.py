"""`QConfigMapping`: which `QConfig` is for which module or function."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import flambeau
from flambeau import nn
from flambeau.ao.quantization import fake_quantize as fakes
from flambeau.ao.quantization import observer as observers
from flambeau.ao.quantization.qconfig import (
    QConfig,
    QConfigAny,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

_F = nn.functional
# Their results lie in [0, 1], and in [-1, 1].
_UNIT_RANGE = (nn.Hardsigmoid, _F.hardsigmoid, "hardsigmoid", "hardsigmoid_", nn.Sigmoid,
               flambeau.sigmoid, "sigmoid", "sigmoid_", nn.Softmax)
_SIGNED_RANGE = (nn.Tanh, flambeau.tanh, "tanh", "tanh_")
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
               flambeau.conv_transpose1d, flambeau.conv_transpose2d, flambeau.conv_transpose3d)

# The name in a dictionary, and the attribute.
_PARTS = {"": "global_qconfig", "object_type": "object_type_qconfigs",
          "module_name_regex": "module_name_regex_qconfigs", "module_name": "module_name_qconfigs",
          "module_name_object_type_order": "module_name_object_type_order_qconfigs"}


class QConfigMapping:
    """Which configuration is for what; the more specific `set_` call wins, whatever the order.

    From general to specific: `set_global`, `set_object_type` (a class or function), then
    `set_module_name_regex`, `set_module_name`, and `set_module_name_object_type_order` (the n-th
    use of a function or class in a module).

    >>> from flambeau.ao.quantization import QConfigMapping, default_qconfig
    >>> mapping = QConfigMapping().set_global(default_qconfig).set_object_type(nn.Conv2d, None)
    >>> mapping.to_dict()["object_type"][0][1] is None
    True
    """

    def __init__(self) -> None:
        self.global_qconfig: QConfigAny = None
        self.object_type_qconfigs: OrderedDict[Callable[..., Any] | str, QConfigAny] = \
            OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, QConfigAny] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, QConfigAny] = OrderedDict()

    def set_global(self, global_qconfig: QConfigAny) -> QConfigMapping:
        """What is for everything that nothing else is said of."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Callable[..., Any] | str, qconfig: QConfigAny
                        ) -> QConfigMapping:
        """What is for modules of a class, calls of a function, or of a method by name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: QConfigAny) -> QConfigMapping:
        """What is for modules whose names match; the pattern set first is tried first."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: QConfigAny) -> QConfigMapping:
        """What is for one module, by its name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(self, module_name: str, object_type: Callable[..., Any],
                                          index: int, qconfig: QConfigAny) -> QConfigMapping:
        """What is for the use number `index` of a class or function in a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def to_dict(self) -> dict[str, Any]:
        """All of it as a dictionary of lists of tuples."""
        result: dict[str, Any] = {"": self.global_qconfig}
        for name, attribute in list(_PARTS.items())[1:]:
            result[name] = [(*key, qconfig) if isinstance(key, tuple) else (key, qconfig)
                            for key, qconfig in getattr(self, attribute).items()]
        return result

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """What `to_dict` gave, as a mapping again."""
        result = cls()
        if "" in qconfig_dict:
            result.set_global(qconfig_dict[""])
        for name in list(_PARTS)[1:]:
            for entry in qconfig_dict.get(name, []):
                getattr(result, f"set_{name}")(*entry)
        return result

    def __repr__(self) -> str:
        lines = ["QConfigMapping ("]
        for attribute in _PARTS.values():
            value = getattr(self, attribute)
            lines.append(f" {attribute}")
            if isinstance(value, OrderedDict) and value:
                lines += [f"  {key}: {qconfig}" for key, qconfig in value.items()]
            else:
                lines.append(f"  {value}")
        return "\n".join([*lines, ")"])


def _default_mapping(is_qat: bool, backend: str, version: int) -> QConfigMapping:
    """The engine's default, but for what needs another weight or has a known range."""
    default = (get_default_qat_qconfig if is_qat else get_default_qconfig)(backend, version)
    weight = fakes.default_weight_fake_quant if is_qat else observers.default_weight_observer
    result = QConfigMapping().set_global(default)
    result.set_object_type("reshape", default_reuse_input_qconfig)
    kind: Any
    whole = weight if backend in ("fbgemm", "x86") else default.weight
    for kind in _TRANSPOSED:                        # whose channels are not the first dimension
        result.set_object_type(kind, QConfig(default.activation, whole))
    for kind in (_F.layer_norm, nn.LayerNorm):
        result.set_object_type(kind, QConfig(default.activation,
                                             observers.default_placeholder_observer))
    result.set_object_type(nn.PReLU, default_quint8_weight_qconfig)
    for kinds, name in ((_UNIT_RANGE, "0to1"), (_SIGNED_RANGE, "neg1to1")):
        fixed = getattr(fakes, f"default_fixed_qparams_range_{name}_fake_quant") if is_qat \
            else getattr(observers, f"default_fixed_qparams_range_{name}_observer")
        for kind in kinds:
            result.set_object_type(kind, QConfig(fixed, weight))
    return result


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """What to quantise how after training, for an engine."""
    return _default_mapping(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """What to quantise how in training, for an engine."""
    return _default_mapping(True, backend, version)


__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]
