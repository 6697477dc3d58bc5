"""Normalisation over the batch."""

from __future__ import annotations

import sys
from typing import Any

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import copy_inherited
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LazyBatchNorm1d", "LazyBatchNorm2d",
           "LazyBatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """What batch and instance norm share: scale, shift and running statistics per channel."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, device=None, dtype=None, *,
                 bias: bool = True) -> None:
        factory = {"device": device, "dtype": dtype}
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self.register_parameter(
            "weight", Parameter(flambeau.empty(num_features, **factory)) if affine else None)
        self.register_parameter(
            "bias", Parameter(flambeau.empty(num_features, **factory)) if affine and bias else None)
        if track_running_stats:
            self.register_buffer("running_mean", flambeau.zeros(num_features, **factory))
            self.register_buffer("running_var", flambeau.ones(num_features, **factory))
            steps = flambeau.tensor(0, dtype=flambeau.long, device=device)
            self.register_buffer("num_batches_tracked", steps)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics seen so far."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Forget the statistics; weight 1 and bias 0."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input):
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):
        version = local_metadata.get("version", None)
        if (version is None or version < 2) and self.track_running_stats:
            # Version 2 added num_batches_tracked.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                known = self.num_batches_tracked
                if known is None or known.device.type == "meta":
                    known = flambeau.tensor(0, dtype=flambeau.long)
                state_dict[key] = known
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)


@copy_inherited("__init__")
class _BatchNorm(_NormBase):
    def _count_batch(self):
        """Count this batch; the weight that its statistics get in the running ones."""
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the average over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        return momentum

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self._count_batch()
        # Statistics of the batch are used in training, and where there are no running ones.
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracking = not self.training or self.track_running_stats
        return F.batch_norm(input, self.running_mean if tracking else None,
                            self.running_var if tracking else None, self.weight, self.bias,
                            by_batch, momentum, self.eps)


class _LazyNormBase(LazyModuleMixin, _NormBase):
    """Takes `num_features` from the second dimension of the first input."""

    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None,
                 dtype=None, *, bias=True) -> None:
        factory = {"device": device, "dtype": dtype}
        # Not affine and not tracking at first: the tensors come below, without shapes.
        super().__init__(0, eps, momentum, False, False, **factory)
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = UninitializedParameter(**factory)
            if bias:
                self.bias = UninitializedParameter(**factory)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = flambeau.tensor(0, dtype=flambeau.long, device=device)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input) -> None:
        if not self.has_uninitialized_params():
            return
        self.num_features = input.shape[1]
        tensors: list[Any] = []
        if self.affine:
            tensors += [self.weight] if self.bias is None else [self.weight, self.bias]
        if self.track_running_stats:
            tensors += [self.running_mean, self.running_var]
        for tensor in tensors:
            tensor.materialize((self.num_features,))
        self.reset_parameters()


class _Dim1:
    def _check_input_dim(self, input):
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class _Dim2:
    def _check_input_dim(self, input):
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class _Dim3:
    def _check_input_dim(self, input):
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class BatchNorm1d(_Dim1, _BatchNorm):
    r"""Normalise each channel over the batch:

    .. math:: y = \frac{x - \mathrm{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} \gamma + \beta

    In training mean and (biased) variance are the batch's, and running estimates move by
    `momentum` (None: plain average) towards them; in evaluation the running ones are used.

    Shape: (N, C) or (N, C, L). Ioffe and Szegedy, Batch normalization, ICML 2015.

    Example:
        >>> nn.BatchNorm1d(3)(flambeau.ones(4, 3)).sum().item()
        0.0
    """


class BatchNorm2d(_Dim2, _BatchNorm):
    """Normalise each channel of (N, C, H, W) over batch and image; see `BatchNorm1d`.

    Example:
        >>> nn.BatchNorm2d(100)
        BatchNorm2d(100, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """


class BatchNorm3d(_Dim3, _BatchNorm):
    """Normalise each channel of (N, C, D, H, W) over batch and volume; see `BatchNorm1d`."""


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A `BatchNorm1d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A `BatchNorm2d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A `BatchNorm3d` that takes `num_features` from its first input."""

    cls_to_become = BatchNorm3d


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all processes; without others it is ordinary batch norm.

    With them it is for GPUs: on the CPU a layer that trains is refused, as PyTorch refuses it.

    Example:
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]
        SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True, track_running_stats: bool = True, process_group=None,
                 device=None, dtype=None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input):
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _synchronizes(self):
        """Whether other processes may have parts of the batch."""
        distributed = sys.modules.get("flambeau.distributed")
        return self.training and distributed is not None and distributed.is_initialized()

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        if self._synchronizes():
            raise ValueError("SyncBatchNorm expected input tensor to be on GPU or XPU or "
                             "privateuseone")
        return super().forward(input)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """A copy of the tree in which all batch norm layers are `SyncBatchNorm`."""
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(module.num_features, module.eps, module.momentum, module.affine,
                            module.track_running_stats, process_group, bias=module.bias is not None)
            if module.affine:
                converted.weight = module.weight
                converted.bias = module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
