"""The stage of a model that its user has cut: its outputs are the inputs of the next stage."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import flambeau

from .... import distributed as dist
from .... import nn
from ....nn.parallel import DistributedDataParallel
from .._backward import _autograd_grad_for_inputs
from .._utils import (
    GetMeshCallback,
    InferenceMode,
    PipeliningMetadataError,
    TensorMeta,
    _derive_grad_metas,
    _DTensorMeta,
    _MeshCache,
    _StageBackwardMeta,
    _StageForwardMeta,
    _StageMeta,
    extract_tensor_metas,
    flatten_args,
    validate_and_normalize_to_tuple,
    validate_static_arg_grad_correspondence,
    validate_tensors_metadata,
)
from .base import Tensor, _normalize_model_output_as_tuple, _PipelineStageBase, _RecvInfo

_DYNAMIC_FORWARD = 1            # some stage of the pipeline is to be tried, its outputs unknown
_HAS_BACKWARD = 2


@contextmanager
def _without_traces(module: nn.Module) -> Iterator[None]:
    """Try a module: afterwards its buffers and the random numbers are as before."""
    saved = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    try:
        with flambeau.random.fork_rng(devices=[]):
            yield
    finally:
        with flambeau.no_grad():
            for buffer, before in saved:
                buffer.copy_(before)


class PipelineStage(_PipelineStageBase):
    """A stage whose outputs are the inputs of the next one.

    What it receives and sends is found in the first step by a trial with ones of the shapes of the
    stage before; nothing is tried where all stages are given `input_args` and `output_args` (and
    `input_grads` and `output_grads`, for distributed tensors).

    Parameters
    ----------
    submodule
        The module of this stage.
    stage_index, num_stages
        Which of the stages of the pipeline it is.
    device
        Where it computes.
    group
        The ranks of the pipeline; all by default.
    dw_builder
        Makes, for each microbatch, a function that computes the gradients of the weights, for
        modules whose backward leaves them out.
    get_mesh
        Finds the meshes of the distributed tensors that are received.

    Examples
    --------
    >>> from flambeau import distributed as dist
    >>> from flambeau.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> stage = PipelineStage(nn.Linear(3, 2), 0, 1, torch.device("cpu"))
    >>> ScheduleGPipe(stage, n_microbatches=2, loss_fn=F.mse_loss).step(
    ...     torch.ones(4, 3), target=torch.zeros(4, 2)).shape
    torch.Size([4, 2])
    >>> dist.destroy_process_group()
    """

    def __init__(self, submodule: nn.Module, stage_index: int, num_stages: int,
                 device: flambeau.device,
                 input_args: Tensor | tuple[Tensor, ...] | None = None,
                 output_args: Tensor | tuple[Tensor, ...] | None = None,
                 output_grads: Tensor | tuple[Tensor | None, ...] | None = None,
                 input_grads: Tensor | tuple[Tensor | None, ...] | None = None,
                 group: dist.ProcessGroup | None = None,
                 dw_builder: Callable[[], Callable[..., None]] | None = None,
                 get_mesh: GetMeshCallback | None = None):
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        inputs = validate_and_normalize_to_tuple(input_args)
        outputs = validate_and_normalize_to_tuple(output_args)
        in_grads = validate_and_normalize_to_tuple(input_grads, allow_none=True)
        out_grads = validate_and_normalize_to_tuple(output_grads, allow_none=True)
        for tensors, grads, is_input in ((inputs, in_grads, True), (outputs, out_grads, False)):
            if tensors is not None and grads is not None:
                validate_static_arg_grad_correspondence(stage_index, tensors, grads, is_input)
        self._mesh_cache = _MeshCache(get_mesh)
        for tensors in (inputs, outputs, in_grads, out_grads):
            self._mesh_cache.update_from_tensors(tensors or ())
        self._user_meta = _StageMeta(
            extract_tensor_metas(inputs), extract_tensor_metas(outputs),
            extract_tensor_metas(in_grads, allow_none=True),
            extract_tensor_metas(out_grads, allow_none=True))
        self._inference_mode: InferenceMode | None = None
        self._fwd_inputs_for_bwd_meta: tuple[Tensor, ...] | None = None
        self._fwd_kwargs_tensors_for_bwd_meta: tuple[Tensor, ...] | None = None
        self._fwd_outputs_for_bwd_meta: tuple[Tensor, ...] | None = None

    # ---- what stages tell each other before the first step --------------------------------------

    def _is_same_rank(self, other_stage: int) -> bool:
        return self.stage_index_to_group_rank[other_stage] == self.group_rank

    def _send_meta(self, meta: Any, dst_stage: int) -> None:
        dist.send_object_list([meta], self._resolve_peer_global_rank(dst_stage), self.group)

    def _recv_meta(self, src_stage: int) -> Any:
        received: list[Any] = [None]
        dist.recv_object_list(received, self._resolve_peer_global_rank(src_stage), self.group)
        return received[0]

    def _exchange(self, given: Any, source: int, target: int,
                  answer: Callable[[Any], Any]) -> Any:
        """Get what the stage `source` says, and tell `target` the answer: through the value that
        is given and returned where they are of this rank."""
        if 0 <= source < self.num_stages and not self._is_same_rank(source):
            given = self._recv_meta(source)
        result = answer(given if 0 <= source < self.num_stages else None)
        if 0 <= target < self.num_stages and not self._is_same_rank(target):
            self._send_meta(result, target)
        return result

    def _warmup_forward_vote(self, has_backward: bool,
                             received_acc: Tensor | None = None) -> Tensor:
        """Add to the votes of the stages before whether this one has to be tried."""
        def vote(before: Tensor | None) -> Tensor:
            mine = _DYNAMIC_FORWARD * InferenceMode.needs_dynamic(self._user_meta, has_backward)
            mine += _HAS_BACKWARD * has_backward
            return flambeau.tensor(mine | (0 if before is None else int(before)))
        return self._exchange(received_acc, self.stage_index - 1, self.stage_index + 1, vote)

    def _warmup_backward_result(self, received_result: Tensor | None = None) -> Tensor:
        """Learn the outcome from the last stage."""
        def learn(outcome: Tensor | None) -> Tensor:
            outcome = received_result if outcome is None else outcome
            dynamic = bool(int(outcome) & _DYNAMIC_FORWARD)
            self._inference_mode = InferenceMode.DYNAMIC if dynamic else InferenceMode.STATIC
            return outcome
        return self._exchange(received_result, self.stage_index + 1, self.stage_index - 1, learn)

    # ---- forward --------------------------------------------------------------------------------

    def _prepare_forward_infra(self, num_microbatches: int,
                               args: tuple[Any, ...] | _StageForwardMeta | None,
                               kwargs: dict[str, Any] | None = None,
                               has_backward: bool = False) -> _StageForwardMeta | None:
        self.chunks = num_microbatches
        result = None
        if self._inference_mode is InferenceMode.DYNAMIC:
            result = self._forward_metadata_inference(args, kwargs, has_backward)
        else:
            self._stage_meta = _StageMeta(
                self._user_meta.inputs, self._user_meta.outputs, self._user_meta.input_grads,
                self._user_meta.output_grads)
            if self.is_first and isinstance(args, tuple):
                validate_tensors_metadata(
                    f"Stage {self.stage_index} forward inputs", self._stage_meta.inputs,
                    tuple(value for value in args if isinstance(value, Tensor)))
        self._setup_forward_recv_info(num_microbatches, has_backward)
        self._setup_forward_send_info()
        return result

    def _forward_metadata_inference(self, args: tuple[Tensor, ...] | _StageForwardMeta | None,
                                    kwargs: dict[str, Any] | None = None,
                                    has_backward: bool = False) -> _StageForwardMeta | None:
        """Find the outputs by a trial with inputs like those that will come."""
        def tell(before: Any) -> _StageForwardMeta:
            if self.is_first:
                inputs = tuple(args)  # type: ignore[arg-type]
            else:
                inputs = tuple(map(self._ones_from_metadata, before.forward_metas))
            tensors = tuple(value for value in inputs if isinstance(value, Tensor))
            self._stage_meta = _StageMeta(inputs=extract_tensor_metas(tensors))
            with _without_traces(self.submod), flambeau.set_grad_enabled(has_backward):
                output = self._compute_outputs(*inputs, module=self.submod, **(kwargs or {}))
            outputs = _normalize_model_output_as_tuple(output)
            for place, value in enumerate(outputs):
                if not isinstance(value, Tensor) and not self.is_last:
                    raise PipeliningMetadataError(
                        f"Stage {self.stage_index} output[{place}] has type "
                        f"{type(value).__name__}. The outputs of a stage must be tensors.")
            outputs = tuple(value for value in outputs if isinstance(value, Tensor))
            if has_backward:
                self._fwd_inputs_for_bwd_meta = inputs
                self._fwd_outputs_for_bwd_meta = outputs
            told = self._record_outputs(outputs)
            self._validate_inferred_metadata()
            return told
        return self._exchange(args, self.stage_index - 1, self.stage_index + 1, tell)

    def _compute_outputs(self, *args: Tensor, module: nn.Module, **kwargs: Any) -> Any:
        inner = module.module if isinstance(module, DistributedDataParallel) else module
        return inner(*args, **kwargs)

    def _to_tensor(self, arg: Tensor | TensorMeta) -> Tensor:
        """A tensor itself, or one like its description."""
        if isinstance(arg, Tensor):
            return arg
        if isinstance(arg, _DTensorMeta):
            return arg.to_dtensor(self.device, self._mesh_cache.get_mesh(arg.mesh_cache_key))
        return arg.to_tensor(self.device)

    def _ones_from_metadata(self, meta: TensorMeta) -> Tensor:
        return flambeau.ones_like(self._to_tensor(meta)).detach().requires_grad_(
            meta.requires_grad)

    def _validate_inferred_metadata(self) -> None:
        """Warn where what the user said is not what was found."""
        for name in ("inputs", "outputs", "input_grads", "output_grads"):
            said, found = getattr(self._user_meta, name), getattr(self._stage_meta, name)
            if said is not None and found is not None:
                validate_tensors_metadata(f"Stage {self.stage_index} {name}", said, found,
                                          raise_on_mismatch=False, warn_on_mismatch=True)

    def _setup_forward_recv_info(self, num_microbatches: int, has_backward: bool) -> None:
        self.has_backward = has_backward
        for chunk in range(num_microbatches):
            self.args_recv_info[chunk] = tuple(
                _RecvInfo(f"root_input_{place}", None, None, None, is_root_arg=True)
                if self.is_first else
                _RecvInfo(f"recv_for_{self.stage_index}_from_{self.stage_index - 1}",
                          self.stage_index - 1, None, meta)
                for place, meta in enumerate(self._stage_meta.inputs or ()))

    def _setup_forward_send_info(self) -> None:
        self.act_send_info = {
            place: [] if self.is_last else [self.stage_index + 1]
            for place in range(len(self._stage_meta.outputs or ()))}

    # ---- backward -------------------------------------------------------------------------------

    def _prepare_backward_infra(self, num_microbatches: int,
                                loss_fn: Callable[..., Tensor] | None = None,
                                target: Tensor | None = None,
                                received_grad_meta: _StageBackwardMeta | None = None,
                                loss_kwargs: dict[str, Any] | None = None,
                                ) -> _StageBackwardMeta | None:
        if self.is_last and (loss_fn is None or target is None):
            raise PipeliningMetadataError(
                f"Stage {self.stage_index}: loss_fn and target required for last stage")
        result = None
        if self._inference_mode is InferenceMode.DYNAMIC:
            result = self._backward_metadata_inference(
                loss_fn, target, received_grad_meta, loss_kwargs)
        else:
            meta = self._stage_meta
            if meta.input_grads is None:
                meta.input_grads = _derive_grad_metas(meta.inputs or ())
            if meta.output_grads is None and not self.is_last:
                meta.output_grads = _derive_grad_metas(meta.outputs or ())
        self.grad_send_info = None
        self._setup_backward_recv_info(num_microbatches)
        return result

    def _backward_metadata_inference(self, loss_fn: Callable[..., Tensor] | None = None,
                                     target: Tensor | None = None,
                                     received_grad_meta: _StageBackwardMeta | None = None,
                                     loss_kwargs: dict[str, Any] | None = None,
                                     ) -> _StageBackwardMeta | None:
        """Find which inputs get gradients, and of which kind, from the trial of the forward.

        The loss is not computed: its function may count its calls, or refuse ones. An input that
        only the loss leaves out gets zeros as its gradient.
        """
        def tell(received: _StageBackwardMeta | None) -> _StageBackwardMeta:
            inputs, outputs = self._fwd_inputs_for_bwd_meta, self._fwd_outputs_for_bwd_meta
            self._post_metadata_inference_cleanup()
            metas = None if received is None else received.backward_metas
            self._stage_meta.output_grads = metas
            pairs = [(output, None if metas is None else self._ones_from_metadata(metas[place]))
                     for place, output in enumerate(outputs)
                     if output.requires_grad and (metas is None or metas[place] is not None)]
            with _without_traces(self.submod):
                grads = self._compute_input_grads(
                    [output for output, _ in pairs], flatten_args(inputs),
                    [flambeau.ones_like(output) if grad is None else grad
                     for output, grad in pairs])
            self._mesh_cache.update_from_tensors(grads)
            self._stage_meta.input_grads = extract_tensor_metas(grads, allow_none=True)
            self._validate_inferred_metadata()
            return _StageBackwardMeta(self._stage_meta.input_grads)
        return self._exchange(received_grad_meta, self.stage_index + 1, self.stage_index - 1, tell)

    def _compute_input_grads(self, outputs: list[Tensor], all_fwd_inputs: list[Tensor],
                             grad_outputs: list[Tensor | None] | None = None,
                             ) -> tuple[Tensor | None, ...]:
        if not outputs:
            return (None,) * len(all_fwd_inputs)
        return _autograd_grad_for_inputs(outputs, all_fwd_inputs, grad_outputs, allow_unused=True)

    def _post_metadata_inference_cleanup(self) -> None:
        self._fwd_inputs_for_bwd_meta = None
        self._fwd_kwargs_tensors_for_bwd_meta = None
        self._fwd_outputs_for_bwd_meta = None

    def _create_grad_recv_info(self, act_send_info: dict[int, list[int]]
                               ) -> tuple[_RecvInfo, ...]:
        if self.is_last:
            return ()
        after, metas = self.stage_index + 1, self._stage_meta.output_grads
        return tuple(_RecvInfo(f"recv_grad_for_{self.stage_index}_from_{after}", after, None,
                               None if metas is None else metas[place])
                     for place in act_send_info)
