"""Models for mobile devices. Not offered: there is no TorchScript of which they are made."""
from __future__ import annotations

from enum import Enum
from typing import Any


class LintCode(Enum):
    """What a model for mobile devices should not have."""

    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


class MobileOptimizerType(Enum):
    """The steps of `optimize_for_mobile`."""

    CONV_BN_FUSION = 0
    INSERT_FOLD_PREPACK_OPS = 1
    REMOVE_DROPOUT = 2
    FUSE_ADD_RELU = 3
    HOIST_CONV_PACKED_PARAMS = 4
    VULKAN_AUTOMATIC_GPU_TRANSFER = 7


def optimize_for_mobile(script_module: Any, optimization_blocklist: set[Any] | None = None,
                        preserved_methods: list[str] | None = None, backend: str = "CPU") -> Any:
    """Not offered: there is no TorchScript to optimise."""
    from flambeau.jit import ScriptModule
    if not isinstance(script_module, ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")
    raise NotImplementedError("optimize_for_mobile: flambeau has no TorchScript")


def generate_mobile_module_lints(script_module: Any) -> list[dict[str, str]]:
    """What should be otherwise in a scripted module before it goes to a mobile device."""
    from flambeau import nn
    from flambeau.jit import ScriptModule
    if not isinstance(script_module, ScriptModule):
        raise TypeError(f"Got {type(script_module)}, but ScriptModule is expected.")
    found = [{"name": LintCode.BUNDLED_INPUT.name,
              "message": "No bundled input for forward, please add bundled inputs before saving "
                         "the module using torch.utils.bundled_inputs."
                         "augment_model_with_bundled_inputs."}]
    found += [{"name": LintCode.REQUIRES_GRAD.name,
               "message": f"Param {name} requires grad, please set torch.no_grad() to reduce "
                          "memory usage and improve computation speed during inference phase."}
              for name, param in script_module.named_parameters() if param.requires_grad]
    for kinds, code, what in ((nn.modules.dropout._DropoutNd, LintCode.DROPOUT, "Dropout"),
                              (nn.modules.batchnorm._BatchNorm, LintCode.BATCHNORM, "Batchnorm")):
        if any(isinstance(module, kinds) for module in script_module.modules()):
            found.append({"name": code.name, "message":
                          f"{what} operator exists, remember to call eval() before saving the "
                          "module and call torch.utils.mobile_optimizer.optimize_for_mobile to "
                          "drop it."})
    return found


__all__ = ["LintCode", "MobileOptimizerType", "generate_mobile_module_lints",
           "optimize_for_mobile"]
