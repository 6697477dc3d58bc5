"""What a backend can quantise: patterns of steps, and the types that they take and give."""
from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any

import flambeau


class ObservationType(enum.Enum):
    """How the result of a pattern is watched: on its own, with its input, or not at all."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    INPUT_OUTPUT_NOT_OBSERVED = 2


@dataclasses.dataclass
class DTypeWithConstraints:
    """A type, and bounds for the integers and scales that a backend takes of it."""

    dtype: flambeau.dtype | None = None
    quant_min_lower_bound: int | float | None = None
    quant_max_upper_bound: int | float | None = None
    scale_min_lower_bound: int | float | None = None
    scale_max_upper_bound: int | float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


@dataclasses.dataclass(init=False)
class DTypeConfig:
    """Types of what comes in, of what goes out, of weight and bias.

    >>> DTypeConfig(flambeau.quint8, flambeau.quint8, flambeau.qint8, flambeau.float).weight_dtype
    torch.qint8
    """

    input_dtype_with_constraints: DTypeWithConstraints
    output_dtype_with_constraints: DTypeWithConstraints
    weight_dtype_with_constraints: DTypeWithConstraints
    bias_dtype: flambeau.dtype | None
    is_dynamic: bool | None

    def __init__(self, input_dtype: flambeau.dtype | DTypeWithConstraints | None = None,
                 output_dtype: flambeau.dtype | DTypeWithConstraints | None = None,
                 weight_dtype: flambeau.dtype | DTypeWithConstraints | None = None,
                 bias_dtype: flambeau.dtype | None = None, is_dynamic: bool | None = None):
        for part, given in (("input", input_dtype), ("output", output_dtype),
                            ("weight", weight_dtype)):
            setattr(self, f"{part}_dtype_with_constraints",
                    given if isinstance(given, DTypeWithConstraints)
                    else DTypeWithConstraints(given))
        self.bias_dtype, self.is_dynamic = bias_dtype, is_dynamic

    @property
    def input_dtype(self) -> flambeau.dtype | None:
        """The type of what comes in, without bounds."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> flambeau.dtype | None:
        """The type of what goes out, without bounds."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> flambeau.dtype | None:
        """The type of the weight, without bounds."""
        return self.weight_dtype_with_constraints.dtype

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """From what `to_dict` gives; types may stand there without bounds."""
        given = [dtype_config_dict.get(f"{part}_dtype") for part in ("input", "output", "weight")]
        for part, value in zip(("input", "output", "weight"), given):
            if value is not None and not isinstance(value, (flambeau.dtype, DTypeWithConstraints)):
                raise ValueError(f"Expected {part}_dtype to be a torch.dtype or "
                                 "DTypeWithConstraints")
        return cls(given[0], given[1], given[2], dtype_config_dict.get("bias_dtype"),
                   dtype_config_dict.get("is_dynamic"))

    def to_dict(self) -> dict[str, Any]:
        """What has been said, as a dictionary."""
        found: dict[str, Any] = {}
        for part in ("input", "output", "weight"):
            held = getattr(self, f"{part}_dtype_with_constraints")
            if held.dtype is not None:
                found[f"{part}_dtype"] = held
        if self.bias_dtype is not None:
            found["bias_dtype"] = self.bias_dtype
        if self.is_dynamic is not None:
            found["is_dynamic"] = self.is_dynamic
        return found


# The settings of a pattern that are kept as they are: their names here and in dictionaries, and
# what they are before they are set.
_SETTINGS: dict[str, tuple[str, Any]] = {
    "root_module": ("root_module", None), "qat_module": ("qat_module", None),
    "reference_quantized_module": ("reference_quantized_module_for_root", None),
    "fused_module": ("fused_module", None), "fuser_method": ("fuser_method", None),
    "_root_node_getter": ("root_node_getter", None),
    "_extra_inputs_getter": ("extra_inputs_getter", None),
    "_num_tensor_args_to_observation_type": ("num_tensor_args_to_observation_type", {}),
    "_input_type_to_index": ("input_type_to_index", {}),
    "_pattern_complex_format": ("pattern_complex_format", None)}


class BackendPatternConfig:
    """What a backend does with a pattern of steps.

    >>> config = BackendPatternConfig(flambeau.nn.Linear).set_root_module(flambeau.nn.Linear)
    >>> config.add_dtype_config(DTypeConfig(is_dynamic=True)).to_dict()["dtype_configs"]
    [{'is_dynamic': True}]
    """

    def __init__(self, pattern: Any = None):
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: type[flambeau.nn.Module] | None = None
        self.qat_module: type[flambeau.nn.Module] | None = None
        self.reference_quantized_module: type[flambeau.nn.Module] | None = None
        self.fused_module: type[flambeau.nn.Module] | None = None
        self.fuser_method: Callable[..., Any] | None = None
        self._root_node_getter: Callable[..., Any] | None = None
        self._extra_inputs_getter: Callable[..., Any] | None = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}
        self._pattern_complex_format: Any = None

    def _set(self, name: str, value: Any) -> BackendPatternConfig:
        setattr(self, name, value)
        return self

    def set_pattern(self, pattern: Any) -> BackendPatternConfig:
        """A class, a function, or a tuple of such in the order of the steps."""
        if self._pattern_complex_format is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        return self._set("pattern", pattern)

    def set_observation_type(self, observation_type: ObservationType) -> BackendPatternConfig:
        """How the result is watched."""
        return self._set("observation_type", observation_type)

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """One more set of types that the backend takes."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """The sets of types that the backend takes."""
        return self._set("dtype_configs", dtype_configs)

    def set_root_module(self, root_module: type[flambeau.nn.Module]) -> BackendPatternConfig:
        """The class of the module in the pattern that has the weight."""
        return self._set("root_module", root_module)

    def set_qat_module(self, qat_module: type[flambeau.nn.Module]) -> BackendPatternConfig:
        """The class that trains with a rounded weight."""
        return self._set("qat_module", qat_module)

    def set_reference_quantized_module(
            self, reference_quantized_module: type[flambeau.nn.Module]) -> BackendPatternConfig:
        """The class that computes with the numbers that a quantised weight stands for."""
        return self._set("reference_quantized_module", reference_quantized_module)

    def set_fused_module(self, fused_module: type[flambeau.nn.Module]) -> BackendPatternConfig:
        """The class that the modules of the pattern become together."""
        return self._set("fused_module", fused_module)

    def set_fuser_method(self, fuser_method: Callable[..., Any]) -> BackendPatternConfig:
        """What makes one module of those of the pattern."""
        return self._set("fuser_method", fuser_method)

    def _set_root_node_getter(self, root_node_getter: Callable[..., Any]) -> BackendPatternConfig:
        return self._set("_root_node_getter", root_node_getter)

    def _set_extra_inputs_getter(self, extra_inputs_getter: Callable[..., Any]
                                 ) -> BackendPatternConfig:
        return self._set("_extra_inputs_getter", extra_inputs_getter)

    def _set_num_tensor_args_to_observation_type(
            self, num_tensor_args_to_observation_type: dict[int, ObservationType]
            ) -> BackendPatternConfig:
        return self._set("_num_tensor_args_to_observation_type",
                         num_tensor_args_to_observation_type)

    def _set_input_type_to_index(self, input_type_to_index: dict[str, int]) -> BackendPatternConfig:
        return self._set("_input_type_to_index", input_type_to_index)

    def _set_pattern_complex_format(self, pattern: Any) -> BackendPatternConfig:
        if self.pattern is not None:
            raise ValueError("Only one of 'pattern' or 'pattern_complex_format' can be set")
        return self._set("_pattern_complex_format", pattern)

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """From what `to_dict` gives."""
        given = backend_pattern_config_dict
        result = cls(given.get("pattern"))
        if "observation_type" in given:
            result.observation_type = given["observation_type"]
        for entry in given.get("dtype_configs", ()):
            if not isinstance(entry, (dict, DTypeConfig)):
                raise ValueError("Expected a list of DTypeConfigs in "
                                 f'backend_pattern_config_dict["dtype_configs"], got '
                                 f"'{type(entry)}'")
            result.add_dtype_config(DTypeConfig.from_dict(entry) if isinstance(entry, dict)
                                    else entry)
        for name, (key, usual) in _SETTINGS.items():
            setattr(result, name, given.get(key, usual.copy() if usual == {} else usual))
        return result

    def to_dict(self) -> dict[str, Any]:
        """What has been said, as a dictionary."""
        found: dict[str, Any] = {
            "observation_type": self.observation_type,
            "dtype_configs": [config.to_dict() for config in self.dtype_configs]}
        if self.pattern is not None:
            found["pattern"] = self.pattern
        return found | self._settings()

    def _settings(self) -> dict[str, Any]:
        held = {key: getattr(self, name) for name, (key, _) in _SETTINGS.items()}
        return {key: value for key, value in held.items() if value not in (None, {})}

    def __repr__(self) -> str:
        shown: dict[str, Any] = {} if self.pattern is None else {"pattern": self.pattern}
        shown["observation_type"] = self.observation_type
        if self.dtype_configs:
            shown["dtype_configs"] = self.dtype_configs
        return f"BackendPatternConfig({shown | self._settings()})"


def _innermost_first(config: BackendPatternConfig) -> Any:
    """A pattern as the nested tuple that names its last step first."""
    if config._pattern_complex_format is not None:
        return config._pattern_complex_format
    pattern = config.pattern
    if not isinstance(pattern, tuple):
        return pattern
    if len(pattern) == 2:
        return pattern[::-1]
    if len(pattern) == 3:
        return pattern[2], pattern[1::-1]
    raise ValueError(f"Expected a tuple with 2 or 3 elements, got: {pattern}")


class BackendConfig:
    """The patterns that a backend can quantise.

    >>> config = BackendConfig("mine")
    >>> config = config.set_backend_pattern_config(BackendPatternConfig(flambeau.nn.Linear))
    >>> config.name, len(config.configs)
    ('mine', 1)
    """

    def __init__(self, name: str = ""):
        self.name = name
        self._pattern_complex_format_to_config: dict[Any, BackendPatternConfig] = {}

    def set_name(self, name: str) -> BackendConfig:
        """The backend's name."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """What is done with one pattern, in place of what was said of it before."""
        self._pattern_complex_format_to_config[_innermost_first(config)] = config
        return self

    def set_backend_pattern_configs(self, configs: list[BackendPatternConfig]) -> BackendConfig:
        """What is done with several patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """What is done with each pattern."""
        return list(self._pattern_complex_format_to_config.values())

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """From what `to_dict` gives."""
        result = cls(backend_config_dict.get("name", ""))
        for entry in backend_config_dict.get("configs", ()):
            if not isinstance(entry, (dict, BackendPatternConfig)):
                raise ValueError("Expected backend_config_dict['configs'] to be a dictionary")
            result.set_backend_pattern_config(
                BackendPatternConfig.from_dict(entry) if isinstance(entry, dict) else entry)
        return result

    def to_dict(self) -> dict[str, Any]:
        """What has been said, as a dictionary."""
        return {"name": self.name, "configs": [config.to_dict() for config in self.configs]}

    def __repr__(self) -> str:
        return f"BackendConfig({vars(self)})"


__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints",
           "ObservationType"]
