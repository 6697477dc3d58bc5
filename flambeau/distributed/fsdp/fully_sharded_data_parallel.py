"""A module whose parameters are spread over the processes of a group."""
from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Any

import flambeau
from flambeau import Tensor, nn
from flambeau.distributed import distributed_c10d as dist
from flambeau.distributed.fsdp import _optim_utils, _runtime_utils
from flambeau.distributed.fsdp._common_utils import (
    FSDP_PREFIX,
    FSDP_WRAPPED_MODULE,
    TrainingState,
    _FSDPState,
    _get_param_to_fqns,
    _override_module_mixed_precision,
)
from flambeau.distributed.fsdp._flat_param import (
    FlatParameter,
    FlatParamHandle,
    HandleShardingStrategy,
)
from flambeau.distributed.fsdp._module_setup import _ignored, _materialize, _norm
from flambeau.distributed.fsdp._state_dict_utils import _register_all_state_dict_hooks
from flambeau.distributed.fsdp._traversal_utils import _get_fsdp_states_with_modules
from flambeau.distributed.fsdp._unshard_param_utils import FLAT_PARAM as FLAT_PARAM
from flambeau.distributed.fsdp._unshard_param_utils import _register_flat_param, _unshard_params
from flambeau.distributed.fsdp.api import (
    _CONFIGS,
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from flambeau.distributed.fsdp.wrap import (
    _construct_wrap_fn,
    _or_policy,
    _Policy,
    _post_order_apply,
    _recursive_wrap,
    _run_mixed_precision_override_policy,
    _wrap_module_cls_individually,
)
from flambeau.distributed.utils import _sync_module_states
from flambeau.optim import Optimizer

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_BROADCAST_BYTES = 250 << 20
_HYBRID = (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
HYBRID_SHARDING_STRATEGIES = list(_HYBRID)


class OptimStateKeyType(Enum):
    """What optimizers' states are by: names of parameters, or their numbers."""
    PARAM_NAME = auto()
    PARAM_ID = auto()


class FullyShardedDataParallel(nn.Module, _FSDPState):
    """Wraps a module of whose parameters, gradients and optimizer states each process keeps a part.

    The parameters become one flat parameter, which is cut into equal parts. They are gathered
    before a forward pass and before its backward pass, and given back after each; gradients are
    added up and cut in the backward pass. What modules in it that are wrapped themselves have, by
    hand or by an `auto_wrap_policy`, they gather themselves. With `use_orig_params` the module's
    parameters keep their names, and are parts of the flat one. Make the optimizer afterwards.

    Zhao et al., "PyTorch FSDP: Experiences on Scaling Fully Sharded Data Parallel", 2023,
    https://arxiv.org/abs/2304.11277.

    >>> from flambeau import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = FullyShardedDataParallel(nn.Linear(2, 1),
    ...                                  sharding_strategy=ShardingStrategy.NO_SHARD)
    >>> model(flambeau.ones(1, 2)).sum().backward()
    >>> [tuple(p.shape) for p in model.parameters()], list(model.state_dict())
    ([(3,)], ['weight', 'bias'])
    >>> dist.destroy_process_group()
    """

    def __init__(self, module: nn.Module, process_group: Any = None,
                 sharding_strategy: ShardingStrategy | None = None,
                 cpu_offload: CPUOffload | None = None, auto_wrap_policy: Any = None,
                 backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
                 mixed_precision: MixedPrecision | None = None,
                 ignored_modules: Iterable[nn.Module] | None = None,
                 param_init_fn: Callable[[nn.Module], None] | None = None, device_id: Any = None,
                 sync_module_states: bool = False, forward_prefetch: bool = False,
                 limit_all_gathers: bool = True, use_orig_params: bool = False,
                 ignored_states: Iterable[Any] | None = None, device_mesh: Any = None):
        super().__init__()
        if ignored_modules is not None and ignored_states is not None:
            raise ValueError("Cannot pass both ignored_modules and ignored_states at the same "
                             "time. Please just pass ignored_states.")
        self._ignored_modules, self._ignored_params = _ignored(ignored_modules, ignored_states)
        self._init_groups(process_group, sharding_strategy, device_mesh)
        self.mixed_precision = mixed_precision or MixedPrecision()
        if self.mixed_precision.keep_low_precision_grads:
            raise NotImplementedError("FullyShardedDataParallel: keep_low_precision_grads")
        self.cpu_offload = cpu_offload or CPUOffload()
        self.backward_prefetch, self.forward_prefetch = backward_prefetch, forward_prefetch
        self.limit_all_gathers = limit_all_gathers
        self.compute_device = flambeau.device("cpu")
        self._use_orig_params = use_orig_params
        self._is_root, self._root = None, None
        self.training_state = TrainingState.IDLE
        self._sync_gradients, self._callback_queued = True, False
        self._in_backward: list[Any] = []
        self._comm_hook = self._comm_hook_state = None
        self._whole: Any = None
        self._state_dict_type = StateDictType.FULL_STATE_DICT
        self._state_dict_config: StateDictConfig = FullStateDictConfig()
        self._optim_state_dict_config: OptimStateDictConfig = FullOptimStateDictConfig()
        if param_init_fn is not None:
            _materialize(module, param_init_fn, self._ignored_modules)
        if sync_module_states:
            for group in (self.process_group, self._inter_node_pg):
                if group is not None and group.size() > 1:
                    _sync_module_states(module, group, _BROADCAST_BYTES, 0, set())
        if auto_wrap_policy is not None:
            self._auto_wrap(module, auto_wrap_policy, {
                "process_group": process_group, "sharding_strategy": sharding_strategy,
                "cpu_offload": cpu_offload, "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision, "forward_prefetch": forward_prefetch,
                "limit_all_gathers": limit_all_gathers, "use_orig_params": use_orig_params,
                "ignored_states": self._ignored_params or None, "device_mesh": device_mesh})
        self._fsdp_wrapped_module = module
        self._init_handle(module)
        _register_all_state_dict_hooks(self)

    # ---- making ---------------------------------------------------------------------------------

    def _init_groups(self, process_group: Any, sharding_strategy: ShardingStrategy | None,
                     device_mesh: Any) -> None:
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        self._inter_node_pg, self._device_mesh = None, device_mesh
        if process_group is not None and device_mesh is not None:
            raise ValueError("Cannot pass both process_group and device_mesh at the same time. "
                             "Please just pass only one of them.")
        if strategy in _HYBRID:
            if device_mesh is not None:
                self._inter_node_pg = device_mesh.get_group(mesh_dim=0)
                self.process_group = device_mesh.get_group(mesh_dim=1)
            elif isinstance(process_group, tuple):
                self.process_group, self._inter_node_pg = process_group
            else:
                raise ValueError(f"Manual wrapping with {strategy} requires explicit "
                                 "specification of process group or device_mesh.")
        elif device_mesh is not None:
            self.process_group = device_mesh.get_group(mesh_dim=0)
        else:
            self.process_group = dist._get_default_group() if process_group is None \
                else process_group
        self.rank, self.world_size = self.process_group.rank(), self.process_group.size()
        if self.world_size == 1 and strategy is not ShardingStrategy.NO_SHARD \
                and strategy not in _HYBRID:
            warnings.warn("FSDP is switching to use `NO_SHARD` instead of "
                          f"{strategy} since the world size is 1.", stacklevel=4)
            strategy = ShardingStrategy.NO_SHARD
        self.sharding_strategy = strategy

    def _auto_wrap(self, module: nn.Module, policy: Any, options: dict[str, Any]) -> None:
        ignored = self._ignored_modules
        precision = options["mixed_precision"]
        classes = tuple(precision._module_classes_to_ignore) if precision is not None else ()
        reduced = precision is not None and (precision.param_dtype or precision.reduce_dtype)
        overrides = _override_module_mixed_precision(module, classes) \
            if reduced and classes else set()
        if isinstance(policy, _Policy):
            targets = policy._run_policy(module, ignored, options)
            if overrides:
                targets = _run_mixed_precision_override_policy(module, classes, ignored, options,
                                                               targets)
            _post_order_apply(module, _construct_wrap_fn(module, targets,
                                                         FullyShardedDataParallel))
            return
        if overrides:
            policy = functools.partial(_or_policy, policies=[policy, functools.partial(
                _wrap_module_cls_individually, module_classes=classes)])
        _recursive_wrap(module, policy, FullyShardedDataParallel, ignored, self._ignored_params,
                        only_wrap_children=True, **options)

    def _init_handle(self, module: nn.Module) -> None:
        inside = {p for inner in self.fsdp_modules(module) for p in inner._managed()}
        ignored = self._ignored_params | {p for m in self._ignored_modules
                                          for p in m.parameters()}
        params = [p for p in module.parameters() if p not in inside and p not in ignored
                  and not isinstance(p, FlatParameter)]
        self._handle: FlatParamHandle | None = None
        if not params:
            return
        self._handle = FlatParamHandle(
            params, module, self.compute_device,
            HandleShardingStrategy[self.sharding_strategy.name], self.cpu_offload.offload_params,
            self.mixed_precision.param_dtype, self.mixed_precision.reduce_dtype,
            self.mixed_precision.keep_low_precision_grads, self.process_group,
            self._use_orig_params)
        self._handle._state = self
        self._handle._post_backward = _runtime_utils._post_backward_hook
        _register_flat_param(self, module)

    def _managed(self) -> list[nn.Parameter]:
        """The parameters of this wrapped module itself."""
        if self._handle is None:
            return []
        return [self._handle.flat_param, *(self._handle.flat_param._params or ())]

    # ---- the module -----------------------------------------------------------------------------

    @property
    def module(self) -> nn.Module:
        """The wrapped module."""
        inner = self._fsdp_wrapped_module
        return getattr(inner, "_checkpoint_wrapped_module", inner)

    @property
    def _has_params(self) -> bool:
        return self._handle is not None

    @property
    def _flat_param(self) -> FlatParameter | None:
        return self._handle.flat_param if self._handle else None

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(FSDP_WRAPPED_MODULE), name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]  # type: ignore[index]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        _runtime_utils._lazy_init(self, self)
        args, kwargs = _runtime_utils._pre_forward(self, self._handle, self, args, kwargs)
        output = self._fsdp_wrapped_module(*args, **kwargs)
        return _runtime_utils._post_forward(self, self._handle, output)

    @staticmethod
    def fsdp_modules(module: nn.Module,
                     root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The wrapped modules in a model; with `root_only` the outermost."""
        found: list[Any] = _get_fsdp_states_with_modules(module)[1]
        if not root_only:
            return found
        inner = {child for m in found for child in m.modules() if child is not m}
        return [m for m in found if m not in inner]

    def check_is_root(self) -> bool:
        """Is this the outermost wrapped module?"""
        _runtime_utils._lazy_init(self, self)
        return bool(self._is_root)

    def apply(self, fn: Callable[[nn.Module], None]) -> FullyShardedDataParallel:
        """`Module.apply`, with whole parameters."""
        unset = self._is_root is None
        with self.summon_full_params(self, writeback=True):
            result = super().apply(fn)
        if unset:
            self._is_root = None
        return result

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """The parameters, by the names that they have without wrappers where they are there."""
        clean = self.training_state is TrainingState.SUMMON_FULL_PARAMS
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(FSDP_PREFIX, "") if clean else name, param

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """The buffers."""
        clean = self.training_state is TrainingState.SUMMON_FULL_PARAMS
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield name.replace(FSDP_PREFIX, "") if clean else name, buffer

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients are not shared: the next pass outside shares them."""
        modules = self.fsdp_modules(self)
        before = [m._sync_gradients for m in modules]
        for m in modules:
            m._sync_gradients = False
        try:
            yield
        finally:
            for m, value in zip(modules, before):
                m._sync_gradients = value

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Let `hook(state, gradient, output)` share gradients; without sharding it gets no
        `output`, and changes the gradient."""
        if not self.check_is_root():
            raise AssertionError("register_comm_hook can only be called on a root instance.")
        for m in self.fsdp_modules(self):
            if m.sharding_strategy in _HYBRID:
                raise AssertionError("Communication hook is currently not supported for hybrid "
                                     "strategies")
            if m._comm_hook is not None:
                raise AssertionError("A communication hook is already registered")
            if not callable(hook):
                raise ValueError(f"The communication hook must be callable but got {hook}")
            m._comm_hook, m._comm_hook_state = hook, state  # type: ignore[assignment]

    # ---- whole parameters and norms -------------------------------------------------------------

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(module: nn.Module, recurse: bool = True, writeback: bool = True,
                           rank0_only: bool = False, offload_to_cpu: bool = False,
                           with_grads: bool = False) -> Iterator[None]:
        """Inside, the module has its whole parameters; what becomes of them is taken over, with
        `writeback`."""
        with _unshard_params(module, recurse, writeback, rank0_only, offload_to_cpu, with_grads):
            yield

    @flambeau.no_grad()
    def clip_grad_norm_(self, max_norm: float | int, norm_type: float | int = 2.0) -> Tensor:
        """`flambeau.nn.utils.clip_grad_norm_` for the gradients of all processes."""
        if not self.check_is_root():
            raise RuntimeError("`clip_grad_norm_()` should only be called on the root FSDP "
                               "instance")
        max_norm, norm_type = float(max_norm), float(norm_type)
        sharded, others = list[Any](), list[Any]()
        seen = set()
        for m in self.fsdp_modules(self):
            handle = m._handle
            if handle is not None and handle.flat_param.grad is not None:
                kind = sharded if handle.uses_sharded_strategy else others
                kind.append(handle.flat_param.grad)
                seen |= {id(p) for p in m._managed()}
        others += [p.grad for p in self.parameters() if id(p) not in seen and p.grad is not None]
        mine, alike = _norm(sharded, norm_type), _norm(others, norm_type)
        if norm_type == math.inf:
            dist.all_reduce(mine, dist.ReduceOp.MAX, group=self.process_group)
            total = flambeau.maximum(mine, alike)
        else:
            mine = mine ** norm_type
            dist.all_reduce(mine, group=self.process_group)
            total = (mine + alike ** norm_type) ** (1.0 / norm_type)
        factor = flambeau.clamp(max_norm / (total + 1e-6), max=1.0)
        for gradient in (*sharded, *others):
            gradient.mul_(factor.to(gradient.dtype))
        return total

    # ---- kinds of state dicts -------------------------------------------------------------------

    @staticmethod
    def set_state_dict_type(module: nn.Module, state_dict_type: StateDictType,
                            state_dict_config: StateDictConfig | None = None,
                            optim_state_dict_config: OptimStateDictConfig | None = None
                            ) -> StateDictSettings:
        """What state dicts of all wrapped modules in a model are from now on; gives what they
        were."""
        kinds = _CONFIGS[state_dict_type]
        config = kinds[0]() if state_dict_config is None else state_dict_config
        optim_config = kinds[1]() if optim_state_dict_config is None else optim_state_dict_config
        for given, kind in ((config, kinds[0]), (optim_config, kinds[1])):
            if type(given) is not kind:
                raise RuntimeError(f"Expected state_dict_config of type {kind} but got "
                                   f"{type(given)}")
        before = FullyShardedDataParallel.get_state_dict_type(module)
        for m in FullyShardedDataParallel.fsdp_modules(module):
            m._state_dict_type, m._state_dict_config = state_dict_type, config
            m._optim_state_dict_config = optim_config
        return before

    @staticmethod
    def get_state_dict_type(module: nn.Module) -> StateDictSettings:
        """What state dicts of the wrapped modules in a model are: all alike."""
        settings = None
        for m in FullyShardedDataParallel.fsdp_modules(module):
            own = StateDictSettings(m._state_dict_type, m._state_dict_config,
                                    m._optim_state_dict_config)
            if settings is not None and settings != own:
                raise AssertionError("All FSDP modules must have the same state dict settings."
                                     f"Got {own} and {settings}.")
            settings = own
        return settings or StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(),
                                             FullOptimStateDictConfig())

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module: nn.Module, state_dict_type: StateDictType,
                        state_dict_config: StateDictConfig | None = None,
                        optim_state_dict_config: OptimStateDictConfig | None = None
                        ) -> Iterator[None]:
        """Inside, state dicts of all wrapped modules in a model are of this kind.

        >>> with FullyShardedDataParallel.state_dict_type(                    # doctest: +SKIP
        ...         model, StateDictType.SHARDED_STATE_DICT):
        ...     state = model.state_dict()
        """
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            FullyShardedDataParallel.set_state_dict_type(
                module, before.state_dict_type, before.state_dict_config,
                before.optim_state_dict_config)

    # ---- states of optimizers -------------------------------------------------------------------

    @staticmethod
    def optim_state_dict(model: nn.Module, optim: Optimizer,
                         optim_state_dict: dict[str, Any] | None = None,
                         group: Any = None) -> dict[str, Any]:
        """An optimizer's state by names of parameters, of the kind of `state_dict_type`."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        config = settings.optim_state_dict_config
        return _optim_utils._optim_state_dict(
            model, optim, optim.state_dict() if optim_state_dict is None else optim_state_dict,
            sharded=settings.state_dict_type is StateDictType.SHARDED_STATE_DICT,
            rank0_only=getattr(config, "rank0_only", False), cpu_offload=config.offload_to_cpu)

    @staticmethod
    def optim_state_dict_to_load(model: nn.Module, optim: Optimizer,
                                 optim_state_dict: dict[str, Any],
                                 is_named_optimizer: bool = False, load_directly: bool = False,
                                 group: Any = None) -> dict[str, Any]:
        """What `optim_state_dict` gave, as the optimizer's `load_state_dict` takes it."""
        state = _optim_utils._optim_state_dict_to_load(model, optim, optim_state_dict,
                                                       by_name=is_named_optimizer)
        if load_directly:
            optim.load_state_dict(state)
        return state

    @staticmethod
    def full_optim_state_dict(model: nn.Module, optim: Optimizer, optim_input: Any = None,
                              rank0_only: bool = True, group: Any = None) -> dict[str, Any]:
        """An optimizer's whole state, by names of parameters."""
        return _optim_utils._optim_state_dict(model, optim, optim.state_dict(), sharded=False,
                                              rank0_only=rank0_only, cpu_offload=True)

    @staticmethod
    def sharded_optim_state_dict(model: nn.Module, optim: Optimizer,
                                 group: Any = None) -> dict[str, Any]:
        """An optimizer's state in pieces, by names of parameters."""
        return _optim_utils._optim_state_dict(model, optim, optim.state_dict(), sharded=True,
                                              rank0_only=False, cpu_offload=True)

    @staticmethod
    def shard_full_optim_state_dict(full_optim_state_dict: dict[str, Any], model: nn.Module,
                                    optim_input: Any = None,
                                    optim: Optimizer | None = None) -> dict[str, Any]:
        """This process's part of a whole state, as the optimizer's `load_state_dict` takes it."""
        if optim is None:
            raise NotImplementedError("shard_full_optim_state_dict without `optim`")
        return _optim_utils._optim_state_dict_to_load(model, optim, full_optim_state_dict,
                                                      by_name=False)

    @staticmethod
    def flatten_sharded_optim_state_dict(sharded_optim_state_dict: dict[str, Any],
                                         model: nn.Module, optim: Optimizer) -> dict[str, Any]:
        """What `sharded_optim_state_dict` gave, as `load_state_dict` takes it."""
        return _optim_utils._optim_state_dict_to_load(model, optim, sharded_optim_state_dict,
                                                      by_name=False)

    @staticmethod
    def scatter_full_optim_state_dict(full_optim_state_dict: dict[str, Any] | None,
                                      model: nn.Module, optim_input: Any = None,
                                      optim: Optimizer | None = None,
                                      group: Any = None) -> dict[str, Any]:
        """This process's part of the whole state that the first one has."""
        found = [full_optim_state_dict]
        dist.broadcast_object_list(found, src=0, group=group)
        assert found[0] is not None
        return FullyShardedDataParallel.shard_full_optim_state_dict(found[0], model, optim_input,
                                                                    optim)

    @staticmethod
    def rekey_optim_state_dict(optim_state_dict: dict[str, Any],
                               optim_state_key_type: OptimStateKeyType, model: nn.Module,
                               optim_input: Any = None,
                               optim: Optimizer | None = None) -> dict[str, Any]:
        """A whole state by names in the place of numbers, or by numbers in the place of names."""
        names = _get_param_to_fqns(model)
        params = [p for g in optim.param_groups for p in g["params"]] if optim is not None \
            else list(model.parameters())
        by_number: dict[Any, Any] = {i: names[p][0] for i, p in enumerate(params)}
        to = by_number if optim_state_key_type is OptimStateKeyType.PARAM_NAME \
            else {name: number for number, name in by_number.items()}
        return {"state": {to[key]: value for key, value in optim_state_dict["state"].items()},
                "param_groups": [{**group, "params": sorted(to[key] for key in group["params"])}
                                 for group in optim_state_dict["param_groups"]]}
