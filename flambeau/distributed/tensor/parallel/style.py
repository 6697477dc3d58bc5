"""Styles: how a module is cut, and how what goes in and comes out lies."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

from flambeau import nn
from flambeau.core.tensor import Tensor
from flambeau.distributed.device_mesh import DeviceMesh
from flambeau.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from flambeau.distributed.tensor.placement_types import Placement

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput",
           "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel"]

Layouts = Placement | tuple[Placement | None, ...]


class ParallelStyle(ABC):
    """How a module is cut over a mesh."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        ...


def _placed(tensor: Tensor, mesh: DeviceMesh, layouts: Sequence[Placement],
            wanted: Sequence[Placement]) -> DTensor:
    """A tensor, local ones as `layouts` say, in the placements `wanted`."""
    if not isinstance(tensor, DTensor):
        tensor = DTensor.from_local(tensor, mesh, layouts, run_check=False)
    if tuple(tensor.placements) != tuple(wanted):
        tensor = tensor.redistribute(placements=wanted, async_op=True)
    return tensor


class _CutParameters(ParallelStyle):
    """Linear layers and embeddings whose weights are cut along one dimension."""

    input_layouts: tuple[Placement, ...]
    output_layouts: tuple[Placement, ...]
    desired_input_layouts: tuple[Placement, ...]
    use_local_output: bool

    def _partition_linear_fn(self, name: str, module: nn.Module, device_mesh: DeviceMesh) -> None:
        raise NotImplementedError

    def _partition_embedding_fn(self, name: str, module: nn.Module, device_mesh: DeviceMesh
                                ) -> None:
        raise NotImplementedError

    @staticmethod
    def _prepare_input_fn(input_layouts: Any, desired_input_layouts: Any, mod: nn.Module,
                          inputs: Any, device_mesh: DeviceMesh) -> Any:
        tensor = inputs[0]
        if not isinstance(tensor, DTensor):
            tensor = DTensor.from_local(tensor, device_mesh, input_layouts, run_check=False)
        if input_layouts != desired_input_layouts:
            tensor = tensor.redistribute(placements=desired_input_layouts, async_op=True)
        return tensor

    @staticmethod
    def _prepare_output_fn(output_layouts: Any, use_local_output: bool, mod: nn.Module,
                           outputs: Any, device_mesh: DeviceMesh) -> Any:
        if outputs.placements != output_layouts:
            outputs = outputs.redistribute(placements=output_layouts, async_op=True)
        return outputs.to_local() if use_local_output else outputs

    def _cut(self, module: nn.Module, mesh: DeviceMesh, placements: dict[str, Placement]) -> None:
        for name, parameter in module.named_parameters(recurse=False):
            cut = distribute_tensor(parameter, mesh, [placements[name]],
                                    src_data_rank=self.src_data_rank)
            module.register_parameter(name, nn.Parameter(cut, parameter.requires_grad))

    def _applied(self, module: nn.Module, mesh: DeviceMesh,
                 embedding_input: tuple[Placement, ...]) -> nn.Module:
        if isinstance(module, nn.Linear):
            partition, wanted = self._partition_linear_fn, self.desired_input_layouts
        elif isinstance(module, nn.Embedding):
            partition, wanted = self._partition_embedding_fn, embedding_input
        else:
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear "
                                      "and nn.Embedding!")
        self.desired_input_layouts = wanted
        return distribute_module(
            module, mesh, partition,
            partial(self._prepare_input_fn, self.input_layouts, wanted),
            partial(self._prepare_output_fn, self.output_layouts, self.use_local_output))

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts="
                f"{self.output_layouts}, use_local_output={self.use_local_output})")


class ColwiseParallel(_CutParameters):
    """A linear layer whose output features are shared among processes (weight and bias are cut
    along their first dimension), or an embedding of which each process has some features.

    What goes in is whole for each process, what comes out is cut along the last dimension, unless
    `input_layouts` and `output_layouts` say otherwise; `use_local_output`: a plain tensor."""

    def __init__(self, *, input_layouts: Placement | None = None,
                 output_layouts: Placement | None = None, use_local_output: bool = True):
        super().__init__()
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts = (Replicate(),)
        self.use_local_output = use_local_output

    def _partition_linear_fn(self, name: str, module: nn.Module, device_mesh: DeviceMesh) -> None:
        self._cut(module, device_mesh, {"weight": Shard(0), "bias": Shard(0)})

    def _partition_embedding_fn(self, name: str, module: nn.Module, device_mesh: DeviceMesh
                                ) -> None:
        self._cut(module, device_mesh, {"weight": Shard(1)})

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return self._applied(module, device_mesh, self.desired_input_layouts)


class RowwiseParallel(_CutParameters):
    """A linear layer whose input features are shared among processes (the weight is cut along its
    second dimension, the bias is whole), or an embedding of which each process has some rows.

    What goes in is cut along the last dimension, what comes out is summed up for all, unless
    `input_layouts` and `output_layouts` say otherwise; `use_local_output`: a plain tensor."""

    def __init__(self, *, input_layouts: Placement | None = None,
                 output_layouts: Placement | None = None, use_local_output: bool = True):
        super().__init__()
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _partition_linear_fn(self, name: str, module: nn.Module, device_mesh: DeviceMesh) -> None:
        self._cut(module, device_mesh, {"weight": Shard(1), "bias": Replicate()})

    def _partition_embedding_fn(self, name: str, module: nn.Module, device_mesh: DeviceMesh
                                ) -> None:
        self._cut(module, device_mesh, {"weight": Shard(0)})

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.desired_input_layouts = (Shard(-1),)
        return self._applied(module, device_mesh, (Replicate(),))


class SequenceParallel(ParallelStyle):
    """A module that works on each place of a sequence (a norm, a dropout): its parameters are
    whole, what goes in and comes out is cut along `sequence_dim`."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False):
        super().__init__()
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _replicate_module_fn(self, name: str, module: nn.Module, device_mesh: DeviceMesh) -> None:
        for key, parameter in module.named_parameters(recurse=False):
            # Each process has the same to begin with: nothing is sent.
            whole = DTensor.from_local(parameter, device_mesh, [Replicate()], run_check=False)
            module.register_parameter(key, nn.Parameter(whole.detach(), parameter.requires_grad))

    @staticmethod
    def _prepare_input_fn(sequence_sharding: Any, mod: nn.Module, inputs: Any,
                          device_mesh: DeviceMesh) -> Any:
        tensor = inputs[0]
        if not isinstance(tensor, Tensor):
            raise ValueError(f"expecting input of {mod} to be a torch.Tensor or DTensor, but got "
                             f"{tensor}")
        return _placed(tensor, device_mesh, sequence_sharding, sequence_sharding)

    @staticmethod
    def _prepare_output_fn(use_local_output: bool, mod: nn.Module, outputs: Any,
                           device_mesh: DeviceMesh) -> Any:
        return outputs.to_local() if use_local_output else outputs

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        return distribute_module(module, device_mesh, self._replicate_module_fn,
                                 partial(self._prepare_input_fn, self.sequence_sharding),
                                 partial(self._prepare_output_fn, self.use_local_output))

    def __repr__(self) -> str:
        return (f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, "
                f"use_local_output={self.use_local_output})")


def _as_layouts(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _same_length(first: Any, second: Any, names: str) -> None:
    if len(first) != len(second):
        raise AssertionError(f"{names} should have same length!")


class PrepareModuleInput(ParallelStyle):
    """Makes distributed tensors of what goes into a module: local tensors as `input_layouts` say
    (None: left as it is), then placed as `desired_input_layouts` say; arguments given by name
    likewise. `use_local_output`: the module gets plain tensors again."""

    def __init__(self, *, input_layouts: Layouts | None = None,
                 desired_input_layouts: Layouts | None = None,
                 input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None,
                 use_local_output: bool = False):
        self.input_layouts = _as_layouts(input_layouts)
        self.desired_input_layouts = _as_layouts(desired_input_layouts)
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            _same_length(self.input_layouts, self.desired_input_layouts,
                         "input_layouts and desired_input_layouts")
        self.with_kwargs = input_kwarg_layouts is not None
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.with_kwargs:
            _same_length(self.input_kwarg_layouts, self.desired_input_kwarg_layouts,
                         "input_kwarg_layouts and desired_input_kwarg_layouts")

    def _prepare_input_arg(self, input: Any, mesh: DeviceMesh, input_layout: Placement | None,
                           desired_layout: Placement | None) -> Any:
        if input_layout is None:
            return input
        if not isinstance(input, Tensor):
            raise AssertionError("expecting input to be a torch.Tensor!")
        placed = input if isinstance(input, DTensor) else DTensor.from_local(
            input, mesh, (input_layout,), run_check=False)
        if desired_layout is not None and input_layout != desired_layout:
            placed = placed.redistribute(placements=(desired_layout,))
        return placed.to_local() if self.use_local_output else placed

    def _prepare_input_fn(self, inputs: Any, device_mesh: DeviceMesh) -> Any:
        if self.input_layouts is None:
            return inputs
        given = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(given) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        assert self.desired_input_layouts is not None
        return tuple(self._prepare_input_arg(value, device_mesh, layout, wanted)
                     for value, layout, wanted in zip(given, self.input_layouts,
                                                      self.desired_input_layouts))

    def _prepare_input_kwarg_fn(self, inputs: Any, kwarg_inputs: dict[str, Any],
                                device_mesh: DeviceMesh) -> Any:
        placed = {name: self._prepare_input_arg(value, device_mesh,
                                                self.input_kwarg_layouts.get(name),
                                                self.desired_input_kwarg_layouts.get(name))
                  for name, value in kwarg_inputs.items()}
        return self._prepare_input_fn(inputs, device_mesh), placed

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        if self.with_kwargs:
            module.register_forward_pre_hook(
                lambda _, args, kwargs: self._prepare_input_kwarg_fn(args, kwargs, device_mesh),
                with_kwargs=True)
        else:
            module.register_forward_pre_hook(
                lambda _, args: self._prepare_input_fn(args, device_mesh))
        return module

    def __repr__(self) -> str:
        return (f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts="
                f"{self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
                f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, "
                f"use_local_output={self.use_local_output})")


class PrepareModuleOutput(ParallelStyle):
    """Places what comes out of a module as `desired_output_layouts` say; where that are local
    tensors, they lie as `output_layouts` say (None: left as it is)."""

    def __init__(self, *, output_layouts: Layouts, desired_output_layouts: Layouts,
                 use_local_output: bool = True):
        self.output_layouts = _as_layouts(output_layouts)
        self.desired_output_layouts = _as_layouts(desired_output_layouts)
        self.use_local_output = use_local_output
        _same_length(self.output_layouts, self.desired_output_layouts,
                     "output_layouts and desired_output_layouts")

    def _prepare_out_fn(self, outputs: Any, device_mesh: DeviceMesh) -> Any:
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(given) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        prepared = []
        for value, layout, wanted in zip(given, self.output_layouts, self.desired_output_layouts):
            if layout is not None:
                placed = value if isinstance(value, DTensor) else DTensor.from_local(
                    value, device_mesh, (layout,), run_check=False)
                if layout != wanted:
                    placed = placed.redistribute(placements=(wanted,))
                value = placed.to_local() if self.use_local_output else placed
            prepared.append(value)
        return prepared[0] if len(prepared) == 1 else tuple(prepared)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        module.register_forward_hook(
            lambda _, inputs, outputs: self._prepare_out_fn(outputs, device_mesh))
        return module

    def __repr__(self) -> str:
        return (f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
                f"desired_output_layouts={self.desired_output_layouts}, use_local_output="
                f"{self.use_local_output})")


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module."""

    def __init__(self, *, input_layouts: Layouts | None = None,
                 desired_input_layouts: Layouts | None = None,
                 input_kwarg_layouts: dict[str, Placement] | None = None,
                 desired_input_kwarg_layouts: dict[str, Placement] | None = None,
                 use_local_input: bool = False, output_layouts: Layouts,
                 desired_output_layouts: Layouts, use_local_output: bool = True):
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input)
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output)

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        self.prepare_module_input._apply(module, device_mesh)
        self.prepare_module_output._apply(module, device_mesh)
        return module

    def __repr__(self) -> str:
        first, second = self.prepare_module_input, self.prepare_module_output
        return (f"PrepareModuleInputOutput(input_layouts={first.input_layouts}, "
                f"desired_input_layouts={first.desired_input_layouts}, input_kwarg_layouts="
                f"{first.input_kwarg_layouts}, desired_input_kwarg_layouts="
                f"{first.desired_input_kwarg_layouts}, use_local_input={first.use_local_output}, "
                f"output_layouts={second.output_layouts}, desired_output_layouts="
                f"{second.desired_output_layouts}, use_local_output={second.use_local_output})")
