"""Files of TorchScript. Not offered: there is no TorchScript to save or to run."""
from __future__ import annotations

import os
from typing import Any


def _missing(name: str, hint: str) -> Any:
    raise NotImplementedError(f"torch.jit.{name}: flambeau {hint}")


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Not offered: there is no TorchScript to save."""
    _missing("save", "has no TorchScript; save the state_dict with torch.save instead")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
         ) -> Any:
    """Not offered: there is no TorchScript to run."""
    if isinstance(f, str | os.PathLike):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    return _missing("load", "does not run TorchScript")


def jit_module_from_flatbuffer(f: Any) -> Any:
    """Not offered: there is no TorchScript to run."""
    return _missing("jit_module_from_flatbuffer", "does not run TorchScript")


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Not offered: there is no TorchScript to save."""
    _missing("save_jit_module_to_flatbuffer", "has no TorchScript")


def get_flatbuffer_module_info(path_or_file: Any) -> dict[str, Any]:
    """Not offered: there is no TorchScript to look at."""
    return _missing("get_flatbuffer_module_info", "has no TorchScript")


def export_opnames(m: Any) -> list[str]:
    """Not offered: there is no TorchScript to look at."""
    return _missing("export_opnames", "has no TorchScript")


def validate_map_location(map_location: Any = None) -> Any:
    """A map location as a device; what is neither a device nor its name is refused."""
    import flambeau
    from flambeau.serialization import validate_cuda_device
    if isinstance(map_location, str):
        map_location = flambeau.device(map_location)
    elif not (map_location is None or isinstance(map_location, flambeau.device)):
        raise ValueError("map_location should be either None, string or torch.device, but got "
                         f"type: {type(map_location)}")
    if map_location is not None and map_location.type == "cuda":
        validate_cuda_device(str(map_location))
    return map_location


__all__ = ["export_opnames", "get_flatbuffer_module_info", "jit_module_from_flatbuffer", "load",
           "save", "save_jit_module_to_flatbuffer", "validate_map_location"]
