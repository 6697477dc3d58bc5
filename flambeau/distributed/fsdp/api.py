"""How `FullyShardedDataParallel` shards, computes and makes state dicts: its options."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import flambeau
from flambeau.nn.modules.batchnorm import _BatchNorm

__all__ = ["BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
           "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision",
           "OptimStateDictConfig", "ShardedOptimStateDictConfig", "ShardedStateDictConfig",
           "ShardingStrategy", "StateDictConfig", "StateDictSettings", "StateDictType"]


class ShardingStrategy(Enum):
    """What each process keeps a share of only.

    `FULL_SHARD`: parameters, gradients and optimizer states; parameters are gathered before each
    forward and backward pass of a module. `SHARD_GRAD_OP`: parameters stay gathered between the
    two passes. `NO_SHARD`: nothing, like `DistributedDataParallel`. `HYBRID_SHARD`: `FULL_SHARD`
    in groups of processes, which are copies of each other; `_HYBRID_SHARD_ZERO2`: the same with
    `SHARD_GRAD_OP`.
    """
    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next module's parameters are gathered in the backward pass: before or after the
    gradients of the current one are computed."""
    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """In which types parameters are used, gradients reduced, and buffers kept; None leaves them.

    Unless `keep_low_precision_grads`, gradients have the type of the parameters when they are
    done. `cast_forward_inputs` gives inputs the type of the parameters, in every wrapped module;
    `cast_root_forward_inputs` in the outermost.
    """
    param_dtype: flambeau.dtype | None = None
    reduce_dtype: flambeau.dtype | None = None
    buffer_dtype: flambeau.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Do parameters and gradients wait in main memory? On the CPU they always do."""
    offload_params: bool = False


class StateDictType(Enum):
    """What `state_dict` gives: whole tensors, the flat share of this process, or sharded ones."""
    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """Options of `state_dict`."""
    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Options of `FULL_STATE_DICT`; with `rank0_only` the other processes get an empty dict."""
    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Options of `LOCAL_STATE_DICT`."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of `SHARDED_STATE_DICT`; `_use_dtensor` gives `DTensor`s, not `ShardedTensor`s."""
    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Options of `optim_state_dict`."""
    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Options of a full state; with `rank0_only` the other processes get an empty dict."""
    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Options of a local state."""
    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options of a sharded state; `_use_dtensor` gives `DTensor`s, not `ShardedTensor`s."""
    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What state dicts of modules and optimizers are."""
    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


_CONFIGS: dict[StateDictType, tuple[type[StateDictConfig], type[OptimStateDictConfig]]] = {
    StateDictType.FULL_STATE_DICT: (FullStateDictConfig, FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (LocalStateDictConfig, LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (ShardedStateDictConfig, ShardedOptimStateDictConfig)}
