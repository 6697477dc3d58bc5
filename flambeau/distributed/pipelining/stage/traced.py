"""The stages of a traced model: its graph says which values go from one to another."""
from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import flambeau

from .... import distributed as dist
from .... import fx, nn
from .._backward import _null_coalesce_accumulate
from .._utils import (
    PipeInfo,
    PipeliningMetadataError,
    _StageBackwardMeta,
    _StageForwardMeta,
    _TensorMeta,
    to_local_if_dtensor,
)
from .base import Tensor, _normalize_model_output_as_tuple, _PipelineStageBase, _RecvInfo


class _Source(NamedTuple):
    """Where a value is from: the output of a stage, or (`stage` None) an input of the pipe."""

    stage: int | None
    place: int


class _PipelineStage(_PipelineStageBase):
    """A stage of a pipe. A value may be used by several stages, and by others than the next;
    then its gradients are summed."""

    def __init__(self, stage_module: nn.Module, stage_index: int, pipe_info: PipeInfo,
                 device: flambeau.device, group: dist.ProcessGroup | None = None):
        super().__init__(stage_module, stage_index, pipe_info.num_stages, device, group)
        self.pipe_info = pipe_info
        calls = [node for node in pipe_info.graph.nodes if node.op == "call_module"]
        if len(calls) != self.num_stages:
            raise AssertionError(f"Number of submodules in pipe graph {len(calls)} does not match "
                                 f"number of stages {self.num_stages}")
        self.submod_to_stage_index = {node.target: place for place, node in enumerate(calls)}
        self.node = calls[stage_index]
        self.name = self.node.name
        # of each stage, where its inputs are from
        self._sources = [[self._source(arg) for arg in node.args] for node in calls]
        self._input_names = [node.target for node in pipe_info.graph.find_nodes(op="placeholder")]
        self._root_inputs: dict[int, dict[int, Any]] = {}   # by microbatch: of the pipe, by place
        self._move_submod_to_device()

    def _move_submod_to_device(self) -> None:
        self.submod.to(self.device)

    def get_stage_index_of_submod(self, submod_name: str) -> int:
        if submod_name not in self.submod_to_stage_index:
            raise AssertionError(f"Stage id of {submod_name} not found")
        return self.submod_to_stage_index[submod_name]

    def find_dst_rank(self, user: fx.Node) -> int | None:
        """The stage that a node of the pipe's graph is; None for its output."""
        return self.submod_to_stage_index.get(user.target) if user.op == "call_module" else None

    def _source(self, arg: fx.Node) -> _Source:
        if arg.op == "placeholder":
            return _Source(None, self.pipe_info.graph.find_nodes(op="placeholder").index(arg))
        if arg.op == "call_function" and arg.target is operator.getitem:
            return _Source(self.get_stage_index_of_submod(arg.args[0].target), arg.args[1])
        return _Source(self.get_stage_index_of_submod(arg.target), 0)

    def _uses(self, source: _Source) -> list[tuple[int, int]]:
        """The later stages, and which of their inputs, that a value goes to."""
        first = 0 if source.stage is None else source.stage
        return [(stage, place) for stage in range(first + 1, self.num_stages)
                for place, found in enumerate(self._sources[stage]) if found == source]

    # ---- what is received and sent --------------------------------------------------------------

    def _prepare_forward_infra(self, num_microbatches: int,
                               args: tuple[Any, ...] | _StageForwardMeta | None,
                               kwargs: dict[str, Any] | None = None,
                               has_backward: bool = False) -> _StageForwardMeta | None:
        self.chunks = num_microbatches
        for chunk in range(num_microbatches):
            self.args_recv_info[chunk] = self._create_act_recv_info()
        self.act_send_info = self._create_act_send_info()
        return None

    def _prepare_backward_infra(self, num_microbatches: int,
                                loss_fn: Callable[..., Tensor] | None = None,
                                target: Tensor | None = None,
                                received_grad_meta: _StageBackwardMeta | None = None,
                                loss_kwargs: dict[str, Any] | None = None,
                                ) -> _StageBackwardMeta | None:
        self.grad_send_info = None
        self._setup_backward_recv_info(num_microbatches)
        return None

    def _create_act_recv_info(self) -> tuple[_RecvInfo, ...]:
        infos = []
        inputs = self.submod.graph.find_nodes(op="placeholder")
        for node, source in zip(inputs, self._sources[self.stage_index]):
            if source.stage is None and self.is_first:
                infos.append(_RecvInfo(f"root_input_{source.place}", None, None, None,
                                       is_root_arg=True))
                continue
            example = node.meta["val"]
            needs_grad = source.stage is not None and (
                example.dtype.is_floating_point or example.dtype.is_complex)
            meta = _TensorMeta(example.shape, example.stride(), example.dtype, needs_grad)
            # the first stage hands on what other stages need of the pipe's inputs
            infos.append(_RecvInfo(node.name, source.stage or 0, None, meta))
        return tuple(infos)

    def _create_act_send_info(self) -> dict[int, list[int]]:
        count = len(_normalize_model_output_as_tuple(self._get_output_node().args[0]))
        return {place: [stage for stage, _ in self._uses(_Source(self.stage_index, place))]
                for place in range(count)}

    def _get_output_node(self) -> fx.Node:
        return self.submod.graph.output_node()

    def _create_grad_recv_info(self, act_send_info: dict[int, list[int]]
                               ) -> tuple[_RecvInfo, ...]:
        outputs = _normalize_model_output_as_tuple(self._get_output_node().args[0])
        infos = []
        for place in act_send_info:
            example = outputs[place].meta["val"]
            needs_grad = example.dtype.is_floating_point or example.dtype.is_complex
            meta = _TensorMeta(example.shape, example.stride(), example.dtype, False)
            infos += [_RecvInfo(f"{place}", stage, None, meta if needs_grad else None)
                      for stage, _ in self._uses(_Source(self.stage_index, place))]
        return tuple(infos)

    def _create_grad_send_info(self, args_recv_info: tuple[_RecvInfo, ...]) -> list[int | None]:
        return [info.source if info.tensor_meta is not None and info.tensor_meta.requires_grad
                else None for info in args_recv_info]

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        outputs, _ = self.fwd_cache[fwd_chunk_id]
        self._check_shapes(outputs)
        values = [(_Source(self.stage_index, place), value) for place, value in enumerate(outputs)]
        values += [(_Source(None, place), value)
                   for place, value in self._root_inputs.pop(fwd_chunk_id, {}).items()]
        return [self._message(dist.isend, to_local_if_dtensor(value, detach=True).contiguous(),
                              stage, True, fwd_chunk_id, place)
                for source, value in values for stage, place in self._uses(source)]

    def _check_shapes(self, outputs: tuple[Any, ...]) -> None:
        """Other stages receive what they were traced with."""
        nodes = _normalize_model_output_as_tuple(self._get_output_node().args[0])
        for place, (node, output) in enumerate(zip(nodes, outputs)):
            traced = node.meta["val"].shape
            if self.act_send_info.get(place) and output.shape != traced:
                raise PipeliningMetadataError(
                    f"Stage {self.stage_index} output[{place}]: shape mismatch: {traced} vs "
                    f"{output.shape}. A pipe works on microbatches of the shape of the example "
                    "that it was made with.")

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        if not self.has_backward or self.is_last:
            return []
        infos = iter(self.grad_recv_info[bwd_chunk_id])
        ops = []
        for output in self.act_send_info:
            for stage, place in self._uses(_Source(self.stage_index, output)):
                info = next(infos)
                if info.tensor_meta is None:
                    continue
                info.buffer = flambeau.empty(info.tensor_meta.shape, dtype=info.tensor_meta.dtype,
                                             device=self.device)
                ops.append(self._message(dist.irecv, info.buffer, stage, False, bwd_chunk_id,
                                         place))
        return ops

    def _retrieve_recv_grads(self, bwd_chunk_id: int) -> tuple[Tensor | None, ...]:
        sums: dict[int, Tensor | None] = defaultdict(lambda: None)
        infos = self.grad_recv_info[bwd_chunk_id]
        for info, grad in zip(infos, self._map_tensor_from_recv_info(infos)):
            place = int(info.input_name)
            sums[place] = _null_coalesce_accumulate(sums[place], grad)
        return tuple(sums[place] for place in self.act_send_info)

    def forward_one_chunk(self, fwd_chunk_id: int, args: tuple[Any, ...],
                          kwargs: dict[str, Any] | None = None,
                          save_forward_output: bool = True) -> Any:
        """Compute a microbatch. The first stage gets all inputs of the pipe, or its own only; what
        other stages need of them it sends on."""
        if self.is_first:
            own = [source.place for source in self._sources[0]]
            if kwargs or len(args) != len(own):
                given = dict(zip(self._input_names, args)) | (kwargs or {})
                missing = [name for name in self._input_names if name not in given]
                if missing:
                    raise TypeError(f"missing inputs of the pipe: {', '.join(missing)}")
                roots = {place: given[name] for place, name in enumerate(self._input_names)}
            else:
                roots = dict(zip(own, args))
            self._root_inputs[fwd_chunk_id] = roots
            args = tuple(roots[place] for place in own)
        return super().forward_one_chunk(fwd_chunk_id, args, None, save_forward_output)

    # ---- several stages on a rank ---------------------------------------------------------------

    def set_local_fwd_input(self, prev_stage_outputs: Any, mb_index: int) -> None:
        """The outputs of the stage before. Values of others could not come: a schedule of several
        stages a rank knows of messages between neighbours only."""
        outputs = _normalize_model_output_as_tuple(prev_stage_outputs)
        ordered = []
        for source in self._sources[self.stage_index]:
            if source.stage != self.stage_index - 1:
                raise NotImplementedError(
                    "a value that skips a stage, with several stages a rank: use a schedule of one "
                    "stage a rank")
            ordered.append(outputs[source.place])
        super().set_local_fwd_input(tuple(ordered), mb_index)

    def set_local_bwd_input(self, next_stage_bwd_outputs: tuple[Tensor | None, ...],
                            mb_index: int) -> None:
        by_use = dict(zip([(self.stage_index + 1, place) for place in range(
            len(next_stage_bwd_outputs))], next_stage_bwd_outputs))
        infos = iter(self.grad_recv_info[mb_index])
        for output in self.act_send_info:
            for use in self._uses(_Source(self.stage_index, output)):
                next(infos).buffer = by_use.get(use)


def build_stage(stage_module: nn.Module, stage_index: int, pipe_info: PipeInfo,
                device: flambeau.device, group: dist.ProcessGroup | None = None
                ) -> _PipelineStage:
    """The stage of a pipe whose module is `stage_module`."""
    return _PipelineStage(stage_module, stage_index, pipe_info, device, group)
