"""`ZeroRedundancyOptimizer`: each process keeps the optimizer's state of its share."""
from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.algorithms.join import Join, Joinable, JoinHook
from flambeau.distributed.optim.utils import functional_optim_map
from flambeau.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]

logger = logging.getLogger(__name__)


class _ZeROJoinHook(JoinHook):
    """A process that has finished keeps sharing the parameters of its share."""

    def __init__(self, zero: Any):
        assert isinstance(zero, ZeroRedundancyOptimizer), (
            "ZeRO join hook requires passing in a ZeroRedundancyOptimizer instance as the state")
        self.zero = zero

    def main_hook(self) -> None:
        """A step of the others."""
        self.zero.step()


def _is_trainable(param: Tensor) -> bool:
    return param.requires_grad


def _recursive_copy_to_device(value: Any, non_blocking: bool, device: flambeau.device) -> Any:
    """`value`, whose tensors, also in lists, tuples and dicts, are on a device."""
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=non_blocking)
    if isinstance(value, (list, tuple)):
        return type(value)(_recursive_copy_to_device(v, non_blocking, device) for v in value)
    if isinstance(value, dict):
        return {key: _recursive_copy_to_device(v, non_blocking, device)
                for key, v in value.items()}
    return value


def _broadcast_object(obj: Any, src_rank: int, group: Any = None,
                      device: flambeau.device = flambeau.device("cpu")) -> Any:
    """The object of process `src_rank`."""
    found = [obj]
    dist.broadcast_object_list(found, src=src_rank, group=group)
    return found[0]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is spread over the processes of a group.

    Each parameter belongs to one process, the largest first to whom has least; that process steps
    for it with `optimizer_class(..., **defaults)`, and sends it to the others. Gradients must be
    the same everywhere, as `DistributedDataParallel` makes them. `param_groups` may be changed as
    in other optimizers. With `parameters_as_bucket_view` the parameters of a process become views
    of one flat tensor, which travels as one. With `overlap_with_ddp`, `hook_with_zero_step` steps
    in the backward pass.

    Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models",
    2020, https://arxiv.org/abs/1910.02054.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> weight = nn.Parameter(flambeau.ones(2))
    >>> optimizer = ZeroRedundancyOptimizer([weight], flambeau.optim.SGD, lr=0.5)
    >>> weight.sum().backward()
    >>> optimizer.step()
    >>> weight.data
    tensor([0.5000, 0.5000])
    >>> dist.destroy_process_group()
    """

    def __init__(self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
                 parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False,
                 **defaults: Any):
        self._all_params, groups = self._verify_and_init_params(params)
        self._verify_same_dense_param_type()
        self.initialized = False
        Optimizer.__init__(self, groups, defaults)
        Joinable.__init__(self)
        self.process_group = dist.group.WORLD if process_group is None else process_group
        self.world_size: int = dist.get_world_size(self.process_group)
        self.rank: int = dist.get_rank(self.process_group)
        self.global_rank = dist.get_global_rank(dist._resolve(self.process_group), self.rank)
        self.parameters_as_bucket_view = parameters_as_bucket_view
        self._overlap_with_ddp = overlap_with_ddp
        self._optim_defaults = defaults
        self._optim_constructor = self._get_optimizer_constructor(optimizer_class)
        self._all_state_dicts: list[dict[str, Any]] = []
        self._default_device = self._all_params[0].device
        self._clear_cache()
        self._init_local_optimizer()
        self.initialized = True

    # ---- parameters and who has them ------------------------------------------------------------

    def _verify_and_init_params(self, params: Any) -> tuple[list[Tensor], list[Any]]:
        if isinstance(params, Tensor):
            raise TypeError("`params` argument should be an iterable of Tensors, but got "
                            f"{flambeau.typename(params)}")
        if not isinstance(params, Iterable):
            raise TypeError("`params` argument should be an iterable of Tensors or dicts, but got "
                            f"{flambeau.typename(params)}")
        given = list(params)
        if not given:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        if all(isinstance(one, Tensor) for one in given):
            return given, given
        if not all(isinstance(one, dict) for one in given):
            raise TypeError("`params` argument should be an iterable of Tensors or dicts")
        found: list[Tensor] = []
        for group in given:
            if "params" not in group:
                raise ValueError("Each parameter group passed-in via `params` must have a "
                                 "'params' key mapping to the parameters in the group")
            group["params"] = [group["params"]] if isinstance(group["params"], Tensor) \
                else list(group["params"])
            found += group["params"]
        return found, given

    def _verify_same_dense_param_type(self) -> None:
        kind = flambeau.typename(self._all_params[0])
        if self._all_params[0].is_sparse:
            raise ValueError("ZeroRedundancyOptimizer only supports using the same dense type for "
                             f"all parameters but got {kind}")
        kind = self._all_params[0].type()
        for param in self._all_params[1:]:
            if param.type() != kind:
                raise ValueError("ZeroRedundancyOptimizer only supports using the same dense type "
                                 f"for all parameters but got both {kind} and {param.type()}")

    def _get_optimizer_constructor(self, optimizer_class: type[Optimizer]) -> Any:
        if not self._overlap_with_ddp or optimizer_class in functional_optim_map.values():
            return optimizer_class
        if optimizer_class not in functional_optim_map:
            raise ValueError("Passing in a functional optimizer to `optimizer_class` or an "
                             "optimizer that has a functional form is required for "
                             f"`overlap_with_ddp=True`, got {optimizer_class}")
        return functional_optim_map[optimizer_class]

    def _clear_cache(self) -> None:
        self._partition_parameters_cache: list[list[dict[str, Any]]] = []

    def _partition_parameters(self, params_per_rank: list[list[Tensor]] | None = None
                              ) -> list[list[dict[str, Any]]]:
        """The parameter groups of each process; all have as many, some of them empty."""
        if self._partition_parameters_cache:
            return self._partition_parameters_cache
        sizes = [0] * self.world_size
        owner = {id(param): rank for rank, params in enumerate(params_per_rank or ())
                 for param in params}
        parts: list[list[dict[str, Any]]] = [[] for _ in range(self.world_size)]
        for group in self.param_groups:
            mine: list[list[Tensor]] = [[] for _ in range(self.world_size)]
            for param in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = owner[id(param)] if owner else self._get_min_index(sizes)
                mine[rank].append(param)
                sizes[rank] += param.numel()
            for rank, params in enumerate(mine):
                parts[rank].append({**group, "params": params})
        self._partition_parameters_cache = parts
        return parts

    @staticmethod
    def _get_min_index(values: list[int]) -> int:
        return values.index(min(values))

    @property
    def _param_to_rank(self) -> dict[Tensor, int]:
        """The process that has each parameter."""
        return {param: rank for rank, groups in enumerate(self._partition_parameters())
                for group in groups for param in group["params"]}

    @property
    def _index_to_param(self) -> list[Tensor]:
        return list(chain.from_iterable(group["params"] for group in self.param_groups))

    @property
    def _param_to_index(self) -> dict[Tensor, int]:
        return {param: index for index, param in enumerate(self._index_to_param)}

    def _params_of(self, rank: int) -> list[Tensor]:
        return [param for group in self._partition_parameters()[rank] for param in group["params"]]

    def _init_local_optimizer(self) -> None:
        mine = self._partition_parameters()[self.rank]
        if self._overlap_with_ddp:
            self.optim: Any = self._optim_constructor([], _allow_empty_param_list=True,
                                                      **self._optim_defaults)
            return
        self.optim = self._optim_constructor(mine, **self._optim_defaults)
        if self.parameters_as_bucket_view:
            self._build_param_buckets()
        for local, whole in zip(self.optim.param_groups, self.param_groups):
            for key, value in local.items():        # an option may be the optimizer's own
                if key != "params":
                    whole[key] = value

    def _build_param_buckets(self) -> None:
        """Let the trainable parameters of each process be views of a flat tensor."""
        self._buckets = []
        self._is_trainable_mask = self._get_is_trainable_mask()
        for rank in range(self.world_size):
            params = [p for p in self._params_of(rank) if _is_trainable(p)]
            flat = flambeau.cat([p.detach().reshape(-1) for p in params]) if params \
                else flambeau.empty(0)
            for param, part in zip(params, flat.split([p.numel() for p in params])):
                param.data = part.view_as(param)
            self._buckets.append(flat)

    def _get_is_trainable_mask(self) -> list[bool]:
        return [_is_trainable(param) for param in self._all_params]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters; all processes do this."""
        super().add_param_group(param_group)
        if not self.initialized:
            return
        self._clear_cache()
        mine = self._partition_parameters()[self.rank]
        if not self._overlap_with_ddp and len(mine) == len(self.optim.param_groups) + 1:
            self.optim.add_param_group(mine[-1])
        if self.parameters_as_bucket_view:
            self._build_param_buckets()

    # ---- steps ----------------------------------------------------------------------------------

    def step(self, closure: Callable[[], float] | None = None, **kwargs: Any) -> Any:
        """A step for this process's share; then all have all new parameters."""
        if self._overlap_with_ddp:
            logger.warning("`step()` should not be included in the training loop when "
                           "`overlap_with_ddp=True`")
            return None
        loss = self._local_step(closure=closure, **kwargs)
        self._sync_params()
        return loss

    def _local_step(self, closure: Callable[[], float] | None = None, **kwargs: Any) -> Any:
        Join.notify_join_context(self)
        mask = self._get_is_trainable_mask()
        if self.parameters_as_bucket_view and mask != self._is_trainable_mask:
            self._build_param_buckets()
        self._sync_param_groups(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None \
            else self.optim.step(closure=closure, **kwargs)
        self._sync_param_groups(self.optim.param_groups, self.param_groups)
        return loss

    @staticmethod
    def _sync_param_groups(src_param_groups: list[dict[str, Any]],
                           dst_param_groups: list[dict[str, Any]]) -> None:
        """Let the options of groups be those of others."""
        for source, to in zip(src_param_groups, dst_param_groups):
            for key in to:
                if key != "params" and key in source:
                    to[key] = source[key]

    def _sync_params(self) -> None:
        """Let all processes have the parameters of all shares."""
        for work in [work for rank in range(self.world_size)
                     for work in self._broadcast_params_from_rank(rank)]:
            work.wait()

    def _broadcast_params_from_rank(self, rank: int) -> list[Any]:
        """Begin to send the share of one process to the others."""
        if self.world_size == 1:
            return []
        params = self._params_of(rank)
        if self.parameters_as_bucket_view:
            tensors = [self._buckets[rank]] if self._buckets[rank].numel() else []
            tensors += [param.detach() for param in params if not _is_trainable(param)]
        else:
            tensors = [param.detach() for param in params]
        return [dist.broadcast(tensor, group=self.process_group, group_src=rank, async_op=True)
                for tensor in tensors]

    # ---- state dicts ----------------------------------------------------------------------------

    def _check_overlap_initialized(self) -> None:
        if self._overlap_with_ddp and not self.optim.state:
            raise RuntimeError(
                "This method should not be called until this ZeroRedundancyOptimizer instance has "
                "been fully initialized: it steps in the backward pass of the model.")

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the states of all shares at one process; all call this."""
        self._check_overlap_initialized()
        if not self._overlap_with_ddp:
            self._sync_param_groups(self.param_groups, self.optim.param_groups)
        index = {id(param): at for param, at in self._param_to_index.items()}
        mine = {index[id(param)]: _recursive_copy_to_device(state, True, flambeau.device("cpu"))
                for param, state in self.optim.state.items()}
        every: Any = [None] * self.world_size if self.rank == to else None
        dist.gather_object(mine, every, group=self.process_group, group_dst=to)
        self._all_state_dicts = every or []

    def state_dict(self) -> dict[str, Any]:
        """The state of all shares, at the process that `consolidate_state_dict` named."""
        self._check_overlap_initialized()
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant "
                "to save the global state.")
        found = super().state_dict()
        merged = {index: state for part in self._all_state_dicts for index, state in part.items()}
        found["state"] = dict(sorted(merged.items()))
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave: each process takes its share."""
        self._check_overlap_initialized()
        owners, params = self._param_to_rank, self._index_to_param
        for index, value in state_dict["state"].items():
            param = params[index]
            if owners[param] != self.rank or value is None:
                continue
            loaded = _recursive_copy_to_device(value, True, param.device)
            self.optim.state[param] = {
                key: one.to(param.dtype) if isinstance(one, Tensor) and key != "step"
                and param.is_floating_point() and one.is_floating_point() else one
                for key, one in loaded.items()}
        super().load_state_dict({"state": {}, "param_groups": state_dict["param_groups"]})
        self._clear_cache()
        if not self._overlap_with_ddp:
            self._sync_param_groups(self.param_groups, self.optim.param_groups)

    # ---- joining --------------------------------------------------------------------------------

    def join_hook(self, **_kwargs: Any) -> JoinHook:
        """What a process that has finished does for the others: see `Join`."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self) -> flambeau.device:
        """Where the processes' counting happens."""
        return self._default_device

    @property
    def join_process_group(self) -> Any:
        """The processes that join."""
        return self.process_group
