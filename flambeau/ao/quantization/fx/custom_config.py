"""What programs say about single modules to `quantize_fx`."""
from __future__ import annotations

from typing import Any

from flambeau._support.own_methods import define_in_subclasses


@define_in_subclasses()
class _Config:
    """Settings that are made one by one; a dictionary of them does as well."""

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def set_preserved_attributes(self, attributes: list[str]) -> Any:
        """Attributes of the model that the result shall have too."""
        self.preserved_attributes = attributes
        return self

    @classmethod
    def _from_dict(cls, config: dict[str, Any]) -> Any:
        result = cls()
        for key, value in config.items():
            if key not in cls._KEYS:
                raise ValueError(f"{cls.__name__}: unknown key {key!r}")
            setattr(result, cls._KEYS[key], value)
        return result

    def to_dict(self) -> dict[str, Any]:
        """What has been set, as a dictionary."""
        found = {key: getattr(self, name) for key, name in self._KEYS.items()}
        return {key: value for key, value in found.items() if value}

    _KEYS: dict[str, str] = {"preserved_attributes": "preserved_attributes"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()})"


class FuseCustomConfig(_Config):
    """Settings of `fuse_fx`."""

    @classmethod
    def from_dict(cls, fuse_custom_config_dict: dict[str, Any]) -> FuseCustomConfig:
        """The settings of a dictionary with the former names."""
        return cls._from_dict(fuse_custom_config_dict)


class PrepareCustomConfig(_Config):
    """Settings of `prepare_fx` and `prepare_qat_fx`.

    >>> from flambeau.ao.quantization.fx.custom_config import PrepareCustomConfig
    >>> PrepareCustomConfig().set_non_traceable_module_names(["head"])
    PrepareCustomConfig({'non_traceable_module_name': ['head']})
    """

    _KEYS = _Config._KEYS | {
        "non_traceable_module_name": "non_traceable_module_names",
        "non_traceable_module_class": "non_traceable_module_classes",
        "input_quantized_idxs": "input_quantized_indexes",
        "output_quantized_idxs": "output_quantized_indexes"}

    def __init__(self) -> None:
        super().__init__()
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []

    @classmethod
    def from_dict(cls, prepare_custom_config_dict: dict[str, Any]) -> PrepareCustomConfig:
        """The settings of a dictionary with the former names."""
        return cls._from_dict(prepare_custom_config_dict)

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Submodules that are not looked into."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> PrepareCustomConfig:
        """Classes of submodules that are not looked into."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Arguments that will come quantised."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Results that shall stay quantised."""
        self.output_quantized_indexes = indexes
        return self


class ConvertCustomConfig(_Config):
    """Settings of `convert_fx`."""

    @classmethod
    def from_dict(cls, convert_custom_config_dict: dict[str, Any]) -> ConvertCustomConfig:
        """The settings of a dictionary with the former names."""
        return cls._from_dict(convert_custom_config_dict)


__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig"]
