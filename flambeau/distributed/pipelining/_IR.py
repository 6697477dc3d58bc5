"""Cut a whole model into a pipe of stages, by its graph.

The model is exported. Where it calls `pipe_split()`, or where a spec or a policy puts such calls,
its graph is cut; what a stage needs of parameters moves into it, and its modules are made again.
"""
from __future__ import annotations

import copy
import logging
from collections import defaultdict
from collections.abc import Callable
from enum import Enum
from operator import attrgetter
from types import MethodType
from typing import Any

import flambeau

from ... import distributed as dist
from ... import fx, nn
from ...export import ExportedProgram, export
from ...fx.graph_module import _get_attr
from ...fx.node import has_side_effect
from ...fx.passes.split_module import split_module
from ._unflatten import _outline_submodules
from ._utils import PipeInfo
from .stage import _PipelineStage

logger = logging.getLogger(__name__)

PP_SUBMOD_PREFIX = "submod_pp"
_CANNOT_CAPTURE = (
    "It seems that we cannot capture your model as a full graph. Typical reasons include graph "
    "breaks, data/shape-dependent control flow, or missing meta kernels for custom operators. You "
    "can use our manual pipeline interfaces, or try to fix the graph breaks, see "
    "https://pytorch.org/docs/stable/export.html")


def get_submod_name(stage_idx: int) -> str:
    return f"{PP_SUBMOD_PREFIX}_{stage_idx}"


# ---- where a model is cut -----------------------------------------------------------------------

@flambeau.library.custom_op("pippy::_pipe_split", mutates_args=())
def _pipe_split() -> None:
    """Nothing but a mark in the graph."""


_pipe_split.register_fake(lambda: None)
aten_pipe_split_alias = flambeau.ops.pippy._pipe_split.default
has_side_effect(aten_pipe_split_alias)


def pipe_split() -> None:
    """Cut the model here: what follows in `forward` is of the next stage.

    Outside of `pipeline` it does nothing.

    >>> from flambeau.distributed.pipelining import pipe_split
    >>> pipe_split()
    """
    flambeau.ops.pippy._pipe_split()


class SplitPoint(Enum):
    """Where to cut at a submodule: before it begins, or after its end."""

    BEGINNING = 1
    END = 2


class PipeSplitWrapper:
    """Where `SplitPoint` was once found."""

    SplitPoint = SplitPoint


def _split_before_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    pipe_split()
    return self._orig_forward(*args, **kwargs)


def _split_after_forward(self: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return self._orig_forward(*args, **kwargs)
    finally:
        pipe_split()


def annotate_split_points(mod: nn.Module, spec: dict[str, SplitPoint]) -> None:
    """Have submodules, by their names, cut the model before or after them."""
    around = {SplitPoint.BEGINNING: _split_before_forward, SplitPoint.END: _split_after_forward}
    for name, point in spec.items():
        submodule = attrgetter(name)(mod)
        if point not in around:
            raise ValueError("Unknown split point type.")
        submodule._orig_forward = submodule.forward
        submodule.forward = MethodType(around[point], submodule)


def _forget_split_points(mod: nn.Module) -> None:
    """The reverse of `annotate_split_points`."""
    for submodule in mod.modules():
        if "_orig_forward" in vars(submodule):
            del submodule.forward, submodule._orig_forward


class MultiUseParameterConfig(Enum):
    """What becomes of a parameter of several stages: one sends it, or each has a copy."""

    TRANSMIT = 1
    REPLICATE = 2


MultiUseParamSpec = MultiUseParameterConfig | dict[str, MultiUseParameterConfig]


# ---- models -------------------------------------------------------------------------------------

class PipeSequential(nn.Sequential):
    """A sequence of which each module is a stage."""

    @staticmethod
    def from_sequential(sequential_instance: nn.Sequential) -> PipeSequential:
        return PipeSequential(*[copy.copy(module) for module in sequential_instance])

    def forward(self, input: Any) -> Any:
        for place, module in enumerate(self):
            if place:
                pipe_split()
            input = module(input)
        return input


class LossWrapper(nn.Module):
    """A module with its loss function; a subclass says in `forward` how they are connected."""

    def __init__(self, module: nn.Module, loss_fn: Callable[..., Any]):
        super().__init__()
        self.module = module
        self.loss_fn = loss_fn

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            "This instance of LossWrapper does not have an overridden forward(). Please implement "
            "forward() to specify the arguments, connection between the module and loss, and loss "
            "output value.")


class TrivialLossWrapper(LossWrapper):
    """The loss of a module's output and targets."""

    loss_spec = True

    def forward(self, x: Any, targets: Any) -> Any:
        return self.loss_fn(self.module(x), targets)


# ---- the pipe -----------------------------------------------------------------------------------

class DetachExecutor(fx.Interpreter):
    """Runs a pipe in this process; each stage computes with values cut from the others' graphs."""

    def __init__(self, module: fx.GraphModule, garbage_collect_values: bool = True):
        super().__init__(module, garbage_collect_values)
        self.value_remap: dict[Any, Any] = {}

    def run(self, *args: Any, initial_env: Any = None) -> Any:
        self.value_remap = {}
        return super().run(*args, initial_env=initial_env)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        def detached(value: Any) -> Any:
            if isinstance(value, flambeau.Tensor) and value.requires_grad:
                if value not in self.value_remap:
                    self.value_remap[value] = value.detach().requires_grad_(True)
                return self.value_remap[value]
            return value
        args, kwargs = fx.node.map_aggregate((args, kwargs), detached)
        return super().call_module(target, args, kwargs)


class Pipe(nn.Module):
    """A model cut into stages. `pipeline` makes it; called, it computes what the model does."""

    def __init__(self, split_gm: fx.GraphModule, num_stages: int, has_loss_and_backward: bool,
                 loss_spec: Any):
        super().__init__()
        self.split_gm = split_gm
        self.num_stages = num_stages
        self.has_loss_and_backward = has_loss_and_backward
        self.loss_spec = loss_spec
        self.executor = DetachExecutor(split_gm)
        users: dict[int, dict[str, str]] = defaultdict(dict)
        for name, stage in split_gm.named_children():
            for parameter_name, parameter in stage.named_parameters():
                origin = getattr(parameter, "_pipe_origin", None) or id(parameter)
                users[origin].setdefault(name, parameter_name)
        self.replicated_params = [found for found in users.values() if len(found) > 1]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        names = [node.target for node in self.split_gm.graph.find_nodes(op="placeholder")]
        given = dict(zip(names, args)) | kwargs
        return self.executor.run(*[given[name] for name in names if name in given])

    def get_stage_module(self, stage_idx: int) -> nn.Module:
        """The module of a stage."""
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return getattr(self.split_gm, get_submod_name(stage_idx))

    @staticmethod
    def _number_and_count_forward_stages(gm: fx.GraphModule) -> int:
        found = [node for node in gm.graph.find_nodes(op="call_module")
                 if node.target.startswith(PP_SUBMOD_PREFIX)]
        for node in found:
            node.meta["stage_idx"] = int(node.target[len(PP_SUBMOD_PREFIX) + 1:])
        return len({node.target for node in found})

    @staticmethod
    def _from_traced(mod: nn.Module, exported_program: ExportedProgram,
                     multi_use_param_spec: MultiUseParamSpec | None = None,
                     output_loss_value_spec: Any = None,
                     split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None
                     ) -> Pipe:
        """The pipe of a program that calls `pipe_split`."""
        if output_loss_value_spec is not None:
            raise NotImplementedError("a pipe with its loss inside: give a schedule the loss_fn")
        if multi_use_param_spec not in (None, MultiUseParameterConfig.REPLICATE):
            raise NotImplementedError("MultiUseParameterConfig.TRANSMIT: each stage has a copy of "
                                      "a parameter that several use")
        traced = exported_program.module(check_guards=False)
        if split_policy is not None:
            traced = split_policy(traced)
        stage = 0

        def number(node: fx.Node) -> str:
            nonlocal stage
            stage += node.target is aten_pipe_split_alias
            return f"pp_{stage}"

        split = split_module(traced, mod, number, keep_original_order=True)
        parts = [name for name, _ in split.named_children() if name.startswith(PP_SUBMOD_PREFIX)]
        _move_state_into_stages(split, parts)
        for name in parts:
            _rebuild_stage(split, name)
        split.graph.lint()
        split.recompile()
        return Pipe(split, Pipe._number_and_count_forward_stages(split), False, None)

    @staticmethod
    def _trace_with_export(mod: nn.Module, example_args: tuple[Any, ...],
                           example_kwargs: dict[str, Any] | None = None) -> ExportedProgram:
        try:
            return export(mod, example_args, example_kwargs)
        except Exception as error:
            raise RuntimeError(_CANNOT_CAPTURE) from error

    @staticmethod
    def from_tracing(mod: nn.Module, example_args: tuple[Any, ...],
                     example_kwargs: dict[str, Any] | None = None,
                     split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None
                     ) -> Pipe:
        """The pipe of a model, by its graph for these arguments."""
        program = Pipe._trace_with_export(mod, example_args, example_kwargs)
        pipe = Pipe._from_traced(mod, program, split_policy=split_policy)
        pipe.train(mod.training)
        return pipe

    def __str__(self) -> str:
        return str(self.split_gm)

    def __repr__(self) -> str:
        return repr(self.split_gm)

    def print_readable(self) -> None:
        """Print the code of the pipe and of its stages."""
        self.split_gm.print_readable()

    def info(self) -> PipeInfo:
        """What a stage knows of the pipe."""
        return PipeInfo(graph=self.split_gm.graph, num_stages=self.num_stages,
                        has_loss_and_backward=self.has_loss_and_backward)

    def build_stage(self, stage_index: int, device: flambeau.device,
                    group: dist.ProcessGroup | None = None) -> _PipelineStage:
        """A stage, on a device, for a schedule."""
        module = self.get_stage_module(stage_index)
        if isinstance(module, fx.GraphModule):
            _modify_graph_op_device(module, device)
        return _PipelineStage(module, stage_index, self.info(), device, group)


def _move_state_into_stages(split: fx.GraphModule, parts: list[str]) -> None:
    """Parameters and buffers that are given to stages become their own; those that several use
    are copied."""
    calls = {node.target: node for node in split.graph.find_nodes(op="call_module")}
    for node in split.graph.find_nodes(op="get_attr"):
        value = _get_attr(split, node.target)
        users = [user for user in node.users if user.target in parts]
        for user in users:
            held = value
            if len(users) > 1 and isinstance(value, nn.Parameter):
                held = copy.deepcopy(value)
                held._pipe_origin = id(value)  # type: ignore[attr-defined]
            stage = split.get_submodule(user.target)
            places = [place for place, arg in enumerate(user.args) if arg is node]
            inputs = stage.graph.find_nodes(op="placeholder")
            for place in places:
                _become_attribute(stage, inputs[place], node.target, held, value, split)
            user.args = tuple(arg for arg in user.args if arg is not node)
        if not node.users:
            split.graph.erase_node(node)
    for name in [name for name, _ in split.named_children()]:
        if name not in calls:
            delattr(split, name)
    for name in [*split._parameters, *split._buffers]:
        if not any(node.target == name for node in split.graph.find_nodes(op="get_attr")):
            delattr(split, name)


def _become_attribute(stage: fx.GraphModule, node: fx.Node, target: str, held: Any, value: Any,
                      split: fx.GraphModule) -> None:
    """Put what an input of a stage was given into the stage itself."""
    holder: Any = stage
    *parents, last = target.split(".")
    for part in parents:
        if part not in holder._modules:
            holder.add_module(part, nn.Module())
        holder = holder._modules[part]
    if isinstance(held, nn.Parameter):
        holder.register_parameter(last, held)
    elif isinstance(held, flambeau.Tensor):
        source = split.get_submodule(".".join(parents))
        holder.register_buffer(last, held,
                               persistent=last not in source._non_persistent_buffers_set)
    else:
        setattr(holder, last, held)
    with stage.graph.inserting_before(node):
        made = stage.graph.get_attr(target)
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    stage.graph.erase_node(node)


def _rebuild_stage(split: fx.GraphModule, name: str) -> None:
    """Take the marks out of a stage's graph, and make its modules again."""
    stage = split.get_submodule(name)
    for node in stage.graph.find_nodes(op="call_function", target=aten_pipe_split_alias):
        stage.graph.erase_node(node)
    made = _outline_submodules(stage.graph)
    made.recompile()
    setattr(split, name, made)


def _modify_graph_op_device(gm: fx.GraphModule, new_device: flambeau.device) -> None:
    """Have tensors that a graph makes be made on a device."""
    for node in gm.graph.nodes:
        if node.op == "call_function" and node.kwargs.get("device") not in (None, new_device):
            node.update_kwarg("device", flambeau.device(new_device))
        elif node.op == "call_module":
            inner = gm.get_submodule(node.target)
            if hasattr(inner, "graph"):
                _modify_graph_op_device(inner, new_device)
    if isinstance(gm, fx.GraphModule):
        gm.recompile()


def pipeline(module: nn.Module, mb_args: tuple[Any, ...],
             mb_kwargs: dict[str, Any] | None = None,
             split_spec: dict[str, SplitPoint] | None = None,
             split_policy: Callable[[fx.GraphModule], fx.GraphModule] | None = None) -> Pipe:
    """Cut a model into stages, where it calls `pipe_split()` or where `split_spec` says.

    Parameters
    ----------
    module
        The model.
    mb_args, mb_kwargs
        Arguments of a microbatch, as examples.
    split_spec
        For names of submodules whether to cut before or after them.
    split_policy
        Instead: puts calls of `pipe_split` into the graph, and returns it.

    Examples
    --------
    >>> from flambeau.distributed.pipelining import SplitPoint, pipeline
    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> pipeline(model, (torch.ones(1, 2),), split_spec={"2": SplitPoint.BEGINNING})
    GraphModule(
      (submod_pp_0): GraphModule(
        (0): InterpreterModule()
        (1): InterpreterModule()
      )
      (submod_pp_1): GraphModule(
        (2): InterpreterModule()
      )
    )
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one "
                         "of them.")
    if split_spec is None:
        return Pipe.from_tracing(module, mb_args, mb_kwargs, split_policy)
    try:
        annotate_split_points(module, split_spec)
        return Pipe.from_tracing(module, mb_args, mb_kwargs)
    finally:
        _forget_split_points(module)


# ---- the loss of a program whose output holds it ------------------------------------------------

def _find_loss_from_output_and_spec(output_val: Any, spec_val: Any) -> Any:
    """The node of the loss in a structure of outputs, where `spec_val` is True."""
    if spec_val is False:
        return None
    if spec_val is True:
        if not isinstance(output_val, fx.Node):
            raise RuntimeError(f"Loss spec must specify a dynamic value but got {output_val}")
        return output_val
    if isinstance(spec_val, (tuple, list)):
        if not isinstance(output_val, (tuple, list)):
            raise RuntimeError(f"Output value {output_val} must match type of loss specification "
                               f"{spec_val}")
        if len(output_val) != len(spec_val):
            raise RuntimeError(f"Output value {output_val} must match length of loss specification "
                               f"{spec_val}")
        pairs = list(zip(output_val, spec_val))
    elif isinstance(spec_val, dict):
        if not isinstance(output_val, dict):
            raise RuntimeError(f"Output value {output_val} must match type of loss specification "
                               f"{spec_val}")
        if set(output_val) != set(spec_val):
            raise RuntimeError(f"Output value {output_val} must match keys of loss specification "
                               f"{spec_val}")
        pairs = [(output_val[key], spec_val[key]) for key in spec_val]
    else:
        raise RuntimeError(f"Unsupported type {type(spec_val)} in loss specification")
    for output, spec in pairs:
        found = _find_loss_from_output_and_spec(output, spec)
        if found is not None:
            return found
    raise RuntimeError(f"Did not find loss value in specification {spec_val}")


def _find_loss_output(mod: nn.Module, g: fx.Graph, output_loss_value_spec: Any
                      ) -> tuple[Any, fx.Node, Any]:
    """The node of a program's loss, its output, and the spec that found it."""
    output = g.output_node()
    value = output.args[0]
    if isinstance(mod, TrivialLossWrapper):
        spec: Any = TrivialLossWrapper.loss_spec
        loss = value[0] if isinstance(value, (tuple, list)) else value
        return loss, output, spec
    if output_loss_value_spec is None:
        if not isinstance(value, fx.Node):
            raise RuntimeError("Did not find any loss value in the output: give its specification")
        return value, output, True
    found = _find_loss_from_output_and_spec(value, output_loss_value_spec)
    if found is None:
        raise RuntimeError(f"Did not find any loss value according to {output_loss_value_spec=}")
    return found, output, output_loss_value_spec
