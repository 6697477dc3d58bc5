"""What all stages do: keep the values of each microbatch, compute with them, and say what is to be
sent and received. When this happens is the schedule's choice."""
from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import flambeau

from .... import distributed as dist
from .... import nn
from ....nn.parallel import DistributedDataParallel
from ...fsdp import FSDPModule
from ...tensor import DTensor
from .._backward import stage_backward, stage_backward_input, stage_backward_weight
from .._debug import map_debug_info
from .._utils import (
    TensorMeta,
    _DTensorMeta,
    _make_tensor_from_meta,
    _MeshCache,
    _StageBackwardMeta,
    _StageForwardMeta,
    _StageMeta,
    extract_tensor_metas,
    flatten_args,
    to_local_if_dtensor,
    validate_tensors_metadata,
)

logger = logging.getLogger(__name__)

Tensor = flambeau.Tensor


def _normalize_model_output_as_tuple(output: Any) -> tuple[Any, ...]:
    """The outputs of a model as a tuple, also where there is one."""
    return tuple(output) if isinstance(output, (tuple, list)) else (output,)


class _RecvInfo:
    """A value that a stage gets: from another stage, or as an argument of the step."""

    def __init__(self, input_name: str, source: int | None, buffer: Tensor | None,
                 tensor_meta: TensorMeta | None, *, is_root_arg: bool = False):
        self.input_name = input_name
        self.source = source
        self.buffer = buffer
        self.tensor_meta = tensor_meta
        self.is_root_arg = is_root_arg

    def __repr__(self) -> str:
        if self.is_root_arg:
            return f"_RecvInfo(input={self.input_name}, root_arg=True)"
        shape = None if self.buffer is None else self.buffer.shape
        return (f"_RecvInfo(input={self.input_name}, source={self.source}, shape={shape}, "
                f"meta={self.tensor_meta})")


class _PipelineStageBase(ABC):
    def __init__(self, submodule: nn.Module, stage_index: int, num_stages: int,
                 device: flambeau.device, group: dist.ProcessGroup | None = None,
                 dw_builder: Callable[[], Callable[..., None]] | None = None):
        if stage_index >= num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod = submodule
        self.stage_index = stage_index
        self.num_stages = num_stages
        self.device = device
        self.group = group
        self.dw_builder = dw_builder
        self.group_rank = dist.get_rank(group)
        self.group_size = dist.get_world_size(group)
        if self.group_size > num_stages:
            raise RuntimeError(f"Pipeline group size {self.group_size} cannot be larger than "
                               f"number of stages {num_stages}")
        # a schedule may say otherwise
        self.stage_index_to_group_rank = {
            stage: stage % self.group_size for stage in range(num_stages)}

        self.chunks: int | None = None
        self.args_recv_info: dict[int, tuple[_RecvInfo, ...]] = {}      # by microbatch
        self.act_send_info: dict[int, list[int]] = {}                   # by output: stages
        self.grad_recv_info: dict[int, tuple[_RecvInfo, ...]] = {}      # by microbatch
        self.grad_send_info: list[int | None] | None = None             # by input: the stage
        self.fwd_cache: dict[int, tuple[Any, list[Any]]] = {}
        self.bwd_cache: dict[int, tuple[Tensor | None, ...]] = {}
        self.backward_state: dict[int, tuple[Any, ...]] = {}    # what weights' gradients need
        self.dw_runner: dict[int, Callable[..., None]] = {}
        self.output_chunks: list[Any] = []
        self.log_prefix = f"[Stage {stage_index}]"
        self._has_backward = False
        self._grads_shared = False
        self._mesh_cache = _MeshCache()
        self._runtime_validate = False
        self._stage_meta = _StageMeta()

    @property
    def has_backward(self) -> bool:
        """Whether gradients are computed."""
        return self._has_backward

    @has_backward.setter
    def has_backward(self, has_backward: bool) -> None:
        self._has_backward = has_backward

    @property
    def is_first(self) -> bool:
        """Does it take the inputs of the model?"""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Does it give the outputs of the model?"""
        return self.stage_index == self.num_stages - 1

    # ---- before the first step ------------------------------------------------------------------

    @abstractmethod
    def _prepare_forward_infra(self, num_microbatches: int,
                               args: tuple[Any, ...] | _StageForwardMeta | None,
                               kwargs: dict[str, Any] | None = None,
                               has_backward: bool = False) -> _StageForwardMeta | None:
        """Find what is received and sent forward; what the next stage is told of it."""

    @abstractmethod
    def _prepare_backward_infra(self, num_microbatches: int,
                                loss_fn: Callable[..., Tensor] | None = None,
                                target: Tensor | None = None,
                                received_grad_meta: _StageBackwardMeta | None = None,
                                loss_kwargs: dict[str, Any] | None = None,
                                ) -> _StageBackwardMeta | None:
        """Find what is received and sent backward; what the stage before is told of it."""

    @abstractmethod
    def _create_grad_recv_info(self, act_send_info: dict[int, list[int]]
                               ) -> tuple[_RecvInfo, ...]:
        """The gradients of the outputs that are received, an entry for each output."""

    def _setup_backward_recv_info(self, num_microbatches: int) -> None:
        for chunk in range(num_microbatches):
            self.grad_recv_info[chunk] = self._create_grad_recv_info(self.act_send_info)

    def _create_grad_send_info(self, args_recv_info: tuple[_RecvInfo, ...]) -> list[int | None]:
        """For each input the stage that waits for its gradient."""
        metas = self._stage_meta.input_grads
        found: list[int | None] = []
        for place, info in enumerate(args_recv_info):
            wanted = metas is None or metas[place] is not None
            found.append(None if info.is_root_arg or not wanted else info.source)
        return found

    def _check_chunk_id(self, chunk_id: int) -> None:
        if self.chunks is None:
            raise RuntimeError("Attempted to access chunk_id before chunks have been configured.")
        if chunk_id >= self.chunks:
            raise RuntimeError(f"Chunk id {chunk_id} is out of range [0, {self.chunks})")

    def _validate_stage_tensors(self, desc: str, expected: tuple[TensorMeta | None, ...] | None,
                                actual: tuple[Tensor | None, ...]) -> None:
        """In debug mode, check tensors against what is known of them."""
        if expected is not None and self._runtime_validate:
            validate_tensors_metadata(desc, expected, actual)

    # ---- messages -------------------------------------------------------------------------------

    def _resolve_peer_global_rank(self, stage_idx: int) -> int:
        rank = self.stage_index_to_group_rank[stage_idx]
        return rank if self.group is None else dist.get_global_rank(self.group, rank)

    def _message(self, op: Callable[..., Any], tensor: Tensor, peer_stage: int, forward: bool,
                 chunk: int, place: int) -> dist.P2POp:
        """A message between this stage and another: the input number `place` of the later one, or
        its gradient. The tag says so: a schedule may have two ranks start their messages in
        different orders."""
        later = max(self.stage_index, peer_stage)
        tag = 2 * ((chunk * self.num_stages + later) * 64 + place) + forward
        return dist.P2POp(op, tensor, self._resolve_peer_global_rank(peer_stage), self.group, tag)

    def _get_recv_ops(self, recv_infos: tuple[_RecvInfo, ...], forward: bool = True,
                      chunk: int = 0) -> list[dist.P2POp]:
        """The messages that fill these buffers."""
        ops = []
        for place, info in enumerate(recv_infos):
            if info.is_root_arg or info.source is None or info.tensor_meta is None:
                continue
            meta = info.tensor_meta
            info.buffer = _make_tensor_from_meta(meta, self.device).contiguous()
            at = place if forward else self._input_place(info.source, place)
            ops.append(self._message(dist.irecv, info.buffer, info.source, forward, chunk, at))
        return ops

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages with the inputs of a microbatch."""
        return self._get_recv_ops(self.args_recv_info[fwd_chunk_id], True, fwd_chunk_id)

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages with the gradients of the outputs of a microbatch."""
        if not self.has_backward or self.is_last:
            return []
        return self._get_recv_ops(self.grad_recv_info[bwd_chunk_id], False, bwd_chunk_id)

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages with the outputs of a microbatch."""
        outputs, _ = self.fwd_cache[fwd_chunk_id]
        return [self._message(dist.isend, to_local_if_dtensor(output, detach=True).contiguous(),
                              stage, True, fwd_chunk_id, self._input_place(stage, place))
                for place, output in enumerate(outputs)
                for stage in self.act_send_info.get(place, ())]

    def _input_place(self, stage: int, output: int) -> int:
        """Which of the inputs of another stage an output of this one is."""
        return output

    def _get_grad_send_meta(self, input_idx: int) -> TensorMeta | None:
        metas = self._stage_meta.input_grads
        return None if metas is None else metas[input_idx]

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        """The messages with the gradients of the inputs of a microbatch."""
        self._check_chunk_id(bwd_chunk_id)
        if not self.has_backward or self.is_first:
            return []
        if self.grad_send_info is None:
            self.grad_send_info = self._create_grad_send_info(self.args_recv_info[0])
        ops = []
        grads = self.bwd_cache.pop(bwd_chunk_id)
        for place, (grad, stage) in enumerate(zip(grads, self.grad_send_info)):
            if stage is None:
                continue
            if grad is None:            # the loss does not depend on this input
                info = self.args_recv_info[bwd_chunk_id][place]
                if info.tensor_meta is None or isinstance(info.tensor_meta, _DTensorMeta):
                    raise RuntimeError(
                        f"[{self.stage_index}] for chunk {bwd_chunk_id} has gradients {grad} and "
                        f"is expecting to send gradients to stage {stage}")
                grad = flambeau.zeros(info.tensor_meta.shape, dtype=info.tensor_meta.dtype,
                                      device=self.device)
            ops.append(self._message(
                dist.isend, to_local_if_dtensor(grad, detach=True).contiguous(), stage, False,
                bwd_chunk_id, place))
        return ops

    def _get_init_p2p_neighbors_ops(self) -> list[dist.P2POp]:
        """Messages to and from the neighbours, that make their connections."""
        ops = []
        for neighbour in (self.stage_index + 1, self.stage_index - 1):
            if not 0 <= neighbour < self.num_stages:
                continue
            rank = self.stage_index_to_group_rank[neighbour]
            if rank != self.group_rank:
                for op in (dist.isend, dist.irecv):
                    ops.append(self._message(op, flambeau.zeros(1, device=self.device), neighbour,
                                             True, 0, 0))
        return ops

    # ---- values that stay in this process -------------------------------------------------------

    def set_local_fwd_input(self, prev_stage_outputs: Any, mb_index: int) -> None:
        """The outputs of the stage before, which is of this rank, as inputs."""
        outputs = _normalize_model_output_as_tuple(prev_stage_outputs)
        for info, output in zip(self.args_recv_info[mb_index], outputs):
            if not isinstance(output, Tensor):
                raise AssertionError(f"expected tensor values as outputs from prev stage, got "
                                     f"{type(output)}")
            if info.is_root_arg:
                raise AssertionError("set_local_fwd_input should only be called on non-first "
                                     "stage, which should always have RecvInfo")
            info.buffer = output.detach().requires_grad_(output.requires_grad)

    def get_local_bwd_output(self, mb_index: int) -> tuple[Tensor | None, ...]:
        """The gradients of the inputs, for the stage before, which is of this rank."""
        if not self.has_backward:
            raise AssertionError("can't steal_bwd_input if this stage doesn't have backward")
        if self.is_first:
            raise AssertionError("can't get bwd output if this stage is first")
        self._check_chunk_id(mb_index)
        return self.bwd_cache.pop(mb_index)

    def set_local_bwd_input(self, next_stage_bwd_outputs: tuple[Tensor | None, ...],
                            mb_index: int) -> None:
        """The gradients of the inputs of the next stage, which is of this rank."""
        if not isinstance(next_stage_bwd_outputs, tuple):
            raise AssertionError(f"Expected tuple, got {type(next_stage_bwd_outputs)}")
        if not self.has_backward:
            raise AssertionError("can't set bwd input if this stage doesn't have backward")
        if self.is_last:
            raise AssertionError("can't set bwd input if this stage is last")
        for info, grad in zip(self.grad_recv_info[mb_index], next_stage_bwd_outputs):
            info.buffer = grad

    def _map_tensor_from_recv_info(self, recv_infos: tuple[_RecvInfo, ...]
                                   ) -> tuple[Tensor | None, ...]:
        """What has arrived; the buffers are given up."""
        found: list[Tensor | None] = []
        for info in recv_infos:
            value, info.buffer = info.buffer, None
            meta = info.tensor_meta
            if isinstance(meta, _DTensorMeta) and value is not None and not isinstance(
                    value, DTensor):
                value = DTensor.from_local(
                    value, self._mesh_cache.get_mesh(meta.mesh_cache_key), meta.placements,
                    shape=meta.global_shape, stride=meta.global_stride).detach()
            found.append(value)
        return tuple(found)

    def _retrieve_recv_activations(self, fwd_chunk_id: int) -> tuple[Tensor, ...]:
        """The inputs of a microbatch, as leaves of a new graph."""
        infos = self.args_recv_info[fwd_chunk_id]
        values = self._map_tensor_from_recv_info(infos)
        for info, value in zip(infos, values):
            if self.has_backward and info.tensor_meta is not None and value is not None:
                value.requires_grad_(info.tensor_meta.requires_grad)
        return values

    def _retrieve_recv_grads(self, bwd_chunk_id: int) -> tuple[Tensor | None, ...]:
        return self._map_tensor_from_recv_info(self.grad_recv_info[bwd_chunk_id])

    def clear_runtime_states(self) -> None:
        """Forget all values, before a new step."""
        self.fwd_cache.clear()
        self.bwd_cache.clear()
        self.backward_state.clear()
        self.dw_runner.clear()
        self.output_chunks.clear()
        self._grads_shared = False
        for infos in (*self.args_recv_info.values(), *self.grad_recv_info.values()):
            for info in infos:
                info.buffer = None

    # ---- computing ------------------------------------------------------------------------------

    def forward_maybe_with_nosync(self, *args: Any, **kwargs: Any) -> Any:
        """The forward; a data parallel module is not to share gradients at its end."""
        parallel = isinstance(self.submod, DistributedDataParallel)
        with self.submod.no_sync() if parallel else nullcontext():
            return self.submod(*args, **kwargs)

    def backward_maybe_with_nosync(
            self, backward_type: str, bwd_kwargs: dict[str, Any], last_backward: bool = False,
    ) -> tuple[tuple[Tensor | None, ...], list[dict[str, Any]] | None]:
        """A backward ("full", "input" or "weight"): the gradients of the inputs, and what their
        weights' need. A data parallel module shares gradients in the last one only."""
        def run() -> tuple[tuple[Tensor | None, ...], list[dict[str, Any]] | None]:
            if backward_type == "full":
                return stage_backward(bwd_kwargs["stage_output"], bwd_kwargs["output_grads"],
                                      bwd_kwargs["input_values"]), None
            if backward_type == "input":
                return stage_backward_input(
                    list(bwd_kwargs["stage_output"]), bwd_kwargs["output_grads"],
                    bwd_kwargs["input_values"], self.submod.parameters())
            if backward_type == "weight":
                return stage_backward_weight(self.submod.parameters(),
                                             bwd_kwargs["param_groups"]), None
            raise RuntimeError(f"Unknown backward type: {backward_type}")

        module = self.submod
        if isinstance(module, DistributedDataParallel):
            if not last_backward or backward_type != "full":
                with module.no_sync():
                    return run()
            outputs = flatten_args(bwd_kwargs["stage_output"])
            module.reducer.prepare_for_forward()
            module.reducer.prepare_for_backward(
                [output for output in outputs
                 if isinstance(output, Tensor) and output.requires_grad])
            self._grads_shared = True
        elif isinstance(module, FSDPModule):
            module.set_is_last_backward(last_backward)
            module.set_reshard_after_backward(last_backward)
            module.set_requires_gradient_sync(last_backward)
        return run()

    def forward_one_chunk(self, fwd_chunk_id: int, args: tuple[Any, ...],
                          kwargs: dict[str, Any] | None = None,
                          save_forward_output: bool = True) -> Any:
        """Compute a microbatch; `args` are the first stage's, other stages have received theirs."""
        args = tuple(args) if self.is_first else self._retrieve_recv_activations(fwd_chunk_id)
        kwargs = kwargs or {}
        if not self.is_first:
            self._validate_stage_tensors(f"Stage {self.stage_index} forward inputs",
                                         self._stage_meta.inputs, args)
        try:
            output = self.forward_maybe_with_nosync(*args, **kwargs)
        except Exception as error:
            raise RuntimeError(f"""
            {self.log_prefix} failed to run forward:
            args: {map_debug_info(args)}
            kwargs: {map_debug_info(kwargs)}
            """) from error
        outputs = _normalize_model_output_as_tuple(output)
        self.fwd_cache[fwd_chunk_id] = (outputs, flatten_args(args) + flatten_args(kwargs))
        if self.is_last and save_forward_output:
            self.output_chunks.append(output)
        self._validate_stage_tensors(f"Stage {self.stage_index} forward outputs",
                                     self._stage_meta.outputs, outputs)
        return output

    def backward_one_chunk(self, bwd_chunk_id: int, loss: Tensor | None = None,
                           full_backward: bool = True, last_backward: bool = False) -> None:
        """The backward of a microbatch, from its loss or from the gradients received. Without
        `full_backward` of the inputs only: `backward_weight_one_chunk` does the rest."""
        if not self.has_backward:
            return
        self._check_chunk_id(bwd_chunk_id)
        outputs, inputs = self.fwd_cache.pop(bwd_chunk_id)
        if self.is_last:
            state = {"stage_output": loss, "output_grads": None, "input_values": inputs}
        else:
            grads = self._retrieve_recv_grads(bwd_chunk_id)
            # the next stage may leave some outputs out
            used = [place for place, grad in enumerate(grads) if grad is not None]
            state = {"stage_output": tuple(outputs[place] for place in used),
                     "output_grads": tuple(grads[place] for place in used),
                     "input_values": inputs}
        if full_backward or self.dw_builder is not None:
            # with a builder, modules leave their weights' gradients to what it builds
            found, _ = self.backward_maybe_with_nosync("full", state, last_backward)
            if self.dw_builder is not None:
                self.dw_runner[bwd_chunk_id] = self.dw_builder()
                if full_backward:
                    self.dw_runner.pop(bwd_chunk_id)()
        else:
            found = self._backward_of_inputs(bwd_chunk_id, state)
        self.bwd_cache[bwd_chunk_id] = found[:len(self.args_recv_info[bwd_chunk_id])]
        if self.is_last and not self.is_first:
            for output in outputs:          # whoever keeps the outputs does not keep the graph
                if isinstance(output, Tensor) and not output._is_view():
                    output.detach_()

    def _backward_of_inputs(self, chunk: int, state: dict[str, Any]) -> tuple[Tensor | None, ...]:
        found: tuple[Tensor | None, ...] = (None,) * len(state["input_values"])
        groups = None
        inputs = [value for value in state["input_values"]
                  if isinstance(value, Tensor) and value.requires_grad]
        if inputs:
            outputs, grads = state["stage_output"], state["output_grads"]
            pairs = [(output, grad) for output, grad in zip(
                _normalize_model_output_as_tuple(outputs),
                grads or (None,) * len(_normalize_model_output_as_tuple(outputs)))
                if isinstance(output, Tensor) and output.requires_grad
                and (grads is None or grad is not None)]
            found, groups = self.backward_maybe_with_nosync("input", {
                **state, "stage_output": [output for output, _ in pairs],
                "output_grads": None if grads is None else [grad for _, grad in pairs]})
            for value in inputs:
                value.grad = None
        self.backward_state[chunk] = (groups, state)
        self.dw_runner[chunk] = lambda: None
        return found

    def backward_weight_one_chunk(self, bwd_chunk_id: int, last_backward: bool = False) -> None:
        """The gradients of the weights that `backward_one_chunk` has left."""
        if not self.has_backward:
            return
        if bwd_chunk_id not in self.dw_runner:
            raise AssertionError(
                f"{self.log_prefix} Attempted to run backward_weight_one_chunk for chunk "
                f"{bwd_chunk_id} without first calling `backward_one_chunk(full_backward=False)`")
        run = self.dw_runner.pop(bwd_chunk_id)
        if self.dw_builder is not None:
            run()
            return
        groups, state = self.backward_state.pop(bwd_chunk_id)
        if groups is None:              # no input waits for its gradient: all is to do still
            self.backward_maybe_with_nosync("full", state, last_backward)
        else:
            self.backward_maybe_with_nosync("weight", {"param_groups": groups}, last_backward)

    def scale_grads(self, grad_scale_factor: int) -> None:
        """Divide the gradients of the parameters."""
        if grad_scale_factor != 1:
            for parameter in self.submod.parameters():
                if parameter.grad is not None:
                    parameter.grad.div_(grad_scale_factor)

    def perform_reduce_grad(self, grad_scale_factor: int) -> None:
        """All microbatches are done: share gradients where that has not happened, and scale."""
        module = self.submod
        if isinstance(module, DistributedDataParallel) and not self._grads_shared:
            size = module.process_group.size()
            for parameter in module.parameters():
                if parameter.grad is not None:
                    dist.all_reduce(parameter.grad, group=module.process_group)
                    parameter.grad.div_(size)
        self._grads_shared = True
        self.scale_grads(grad_scale_factor)

    def _record_outputs(self, outputs: tuple[Tensor, ...]) -> _StageForwardMeta:
        """Remember outputs, and their meshes; what the next stage is told."""
        self._mesh_cache.update_from_tensors(outputs)
        self._stage_meta.outputs = extract_tensor_metas(outputs)
        return _StageForwardMeta(self._stage_meta.outputs)
