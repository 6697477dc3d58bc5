"""What backends can quantise, for programs that describe one of their own.

The descriptions of PyTorch's backends are not here, and `quantize_fx` takes no description.
"""
from __future__ import annotations

from typing import Any

from flambeau._support.lazy.modules import parts
from flambeau.ao.quantization.backend_config.backend_config import *

_OFFERED = ("get_fbgemm_backend_config", "get_native_backend_config",
            "get_native_backend_config_dict", "get_qnnpack_backend_config",
            "get_tensorrt_backend_config", "get_tensorrt_backend_config_dict",
            "get_executorch_backend_config", "get_onednn_backend_config")


def _absent(name: str) -> Any:
    def function() -> Any:
        raise NotImplementedError(f"torch.ao.quantization.backend_config.{name}")
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Not offered: raises NotImplementedError."
    return function


globals().update({name: _absent(name) for name in _OFFERED})
__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints",
           "ObservationType", *_OFFERED]
parts(__name__, {
    "executorch": "get_executorch_backend_config", "fbgemm": "get_fbgemm_backend_config",
    "native": "get_native_backend_config get_native_backend_config_dict",
    "onednn": "get_onednn_backend_config", "qnnpack": "get_qnnpack_backend_config",
    "tensorrt": "get_tensorrt_backend_config get_tensorrt_backend_config_dict"})
