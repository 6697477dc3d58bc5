"""What the inputs and outputs of an exported graph are: parameters, buffers, the user's own."""
from __future__ import annotations

import dataclasses
from enum import Enum, auto
from typing import Any

__all__ = ["ConstantArgument", "CustomObjArgument", "ExportBackwardSignature",
           "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec",
           "SymBoolArgument", "SymFloatArgument", "SymIntArgument", "TensorArgument"]


@dataclasses.dataclass
class TensorArgument:
    """A tensor: the node of that name."""
    name: str


@dataclasses.dataclass
class TokenArgument:
    """A token that keeps effects in order: the node of that name."""
    name: str


@dataclasses.dataclass
class SymIntArgument:
    """An integer that depends on sizes: the node of that name."""
    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A number that depends on sizes: the node of that name."""
    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A truth value that depends on sizes: the node of that name."""
    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of the user's: the node of that name."""
    name: str
    class_fqn: str
    fake_val: Any = None


@dataclasses.dataclass
class ConstantArgument:
    """A value that the graph holds itself."""
    name: str
    value: Any


class InputKind(Enum):
    """What an input is."""
    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()
    CUSTOM_OBJ = auto()
    TOKEN = auto()


class OutputKind(Enum):
    """What an output is."""
    USER_OUTPUT = auto()
    LOSS_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    GRADIENT_TO_PARAMETER = auto()
    GRADIENT_TO_USER_INPUT = auto()
    USER_INPUT_MUTATION = auto()
    TOKEN = auto()


def _named(arg: Any) -> str:
    return "" if isinstance(arg, ConstantArgument) else arg.name


@dataclasses.dataclass
class InputSpec:
    """One input: its kind, its node, and the name of what it holds."""
    kind: InputKind
    arg: Any
    target: str | None
    persistent: bool | None = None

    def __post_init__(self) -> None:
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """One output: its kind, its node, and the name of what it changes."""
    kind: OutputKind
    arg: Any
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs are gradients, and of what."""
    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


def _by_node(specs: list[Any], kind: InputKind | OutputKind) -> dict[str, str]:
    return {s.arg.name: s.target for s in specs if s.kind is kind and s.target}


def _targets(kind: InputKind, doc: str) -> property:
    """What the inputs of a kind hold, by name."""
    return property(lambda self: tuple(_by_node(self.input_specs, kind).values()), doc=doc)


def _targets_by_node(kind: InputKind | OutputKind, doc: str) -> property:
    """What the inputs, or outputs, of a kind hold, by their nodes."""
    specs = "input_specs" if isinstance(kind, InputKind) else "output_specs"
    return property(lambda self: _by_node(getattr(self, specs), kind), doc=doc)


@dataclasses.dataclass
class ExportGraphSignature:
    """The inputs and outputs of an exported graph, in order.

    >>> signature = ExportGraphSignature(
    ...     [InputSpec(InputKind.PARAMETER, TensorArgument("p_weight"), "weight"),
    ...      InputSpec(InputKind.USER_INPUT, TensorArgument("x"), None)],
    ...     [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument("linear"), None)])
    >>> signature.parameters, signature.user_inputs
    (('weight',), ('x',))
    """
    input_specs: list[InputSpec]
    output_specs: list[OutputSpec]

    parameters = _targets(InputKind.PARAMETER, "The names of the parameters.")
    buffers = _targets(InputKind.BUFFER, "The names of the buffers.")
    lifted_tensor_constants = _targets(
        InputKind.CONSTANT_TENSOR, "The names of tensors that are neither.")
    lifted_custom_objs = _targets(InputKind.CUSTOM_OBJ, "The names of objects of the user's.")
    inputs_to_parameters = _targets_by_node(
        InputKind.PARAMETER, "Nodes to the parameters that they hold.")
    inputs_to_buffers = _targets_by_node(InputKind.BUFFER, "Nodes to the buffers that they hold.")
    inputs_to_lifted_tensor_constants = _targets_by_node(
        InputKind.CONSTANT_TENSOR, "Nodes to the constants that they hold.")
    inputs_to_lifted_custom_objs = _targets_by_node(
        InputKind.CUSTOM_OBJ, "Nodes to the objects that they hold.")
    buffers_to_mutate = _targets_by_node(
        OutputKind.BUFFER_MUTATION, "Outputs to the buffers whose new values they are.")
    parameters_to_mutate = _targets_by_node(
        OutputKind.PARAMETER_MUTATION, "Outputs to the parameters whose new values they are.")
    user_inputs_to_mutate = _targets_by_node(
        OutputKind.USER_INPUT_MUTATION, "Outputs to the user's inputs whose new values they are.")

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that are not in the state dict."""
        return tuple([s.target for s in self.input_specs
                      if s.kind is InputKind.BUFFER and s.persistent is False and s.target])

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The user's inputs: names of nodes, or constants."""
        return tuple([s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name
                      for s in self.input_specs if s.kind is InputKind.USER_INPUT])

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The user's outputs: names of nodes, or constants."""
        return tuple([s.arg.value if isinstance(s.arg, ConstantArgument) else s.arg.name
                      for s in self.output_specs
                      if s.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)])

    @property
    def backward_signature(self) -> ExportBackwardSignature | None:
        """Which outputs are gradients; None if there is no loss among the outputs."""
        loss = [s.arg.name for s in self.output_specs if s.kind is OutputKind.LOSS_OUTPUT]
        if not loss:
            return None
        return ExportBackwardSignature(
            _by_node(self.output_specs, OutputKind.GRADIENT_TO_PARAMETER),
            _by_node(self.output_specs, OutputKind.GRADIENT_TO_USER_INPUT), loss[0])

    @property
    def assertion_dep_token(self) -> None:
        """None: graphs have no such token."""

    @property
    def input_tokens(self) -> tuple[str, ...]:
        """The inputs that are tokens."""
        return tuple([s.arg.name for s in self.input_specs if s.kind is InputKind.TOKEN])

    @property
    def output_tokens(self) -> tuple[str, ...]:
        """The outputs that are tokens."""
        return tuple([s.arg.name for s in self.output_specs if s.kind is OutputKind.TOKEN])

    def replace_all_uses(self, old: str, new: str) -> None:
        """Let the node `new` stand where `old` stood."""
        specs: list[Any] = [*self.input_specs, *self.output_specs]
        for spec in specs:
            if getattr(spec.arg, "name", None) == old:
                spec.arg.name = new

    def get_replace_hook(self, replace_inputs: bool = False) -> Any:
        """A function `(old node, new name, user node)` that keeps the signature right."""
        def replace(old: Any, new: str, user: Any) -> None:
            specs = list(self.output_specs) if user.op == "output" else []
            for spec in specs + (list(self.input_specs) if replace_inputs else []):
                if getattr(spec.arg, "name", None) == old.name:
                    spec.arg.name = new
        return replace

    def __str__(self) -> str:
        inputs = "\n".join(str(s) for s in self.input_specs)
        outputs = "\n".join(str(s) for s in self.output_specs)
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
