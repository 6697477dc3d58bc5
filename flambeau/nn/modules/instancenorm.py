"""Normalisation of each channel of each sample."""

from __future__ import annotations

import warnings

from flambeau import Tensor
from flambeau.nn import functional as F

from .batchnorm import _LazyNormBase, _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LazyInstanceNorm1d",
           "LazyInstanceNorm2d", "LazyInstanceNorm3d"]


class _InstanceNorm(_NormBase):
    _n_dims: int

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1,
                 affine: bool = False, track_running_stats: bool = False, device=None, dtype=None,
                 *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype,
                         bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self._n_dims + 1

    def _check_input_dim(self, input):
        n = self._get_no_batch_dim()
        if input.dim() not in (n, n + 1):
            raise ValueError(f"expected {n}D or {n + 1}D input (got {input.dim()}D input)")

    def _check_features(self, input):
        feature_dim = input.dim() - self._get_no_batch_dim()
        if input.size(feature_dim) == self.num_features:
            return
        if self.affine:
            raise ValueError(f"expected input's size at dim={feature_dim} to match num_features "
                             f"({self.num_features}), but got: {input.size(feature_dim)}.")
        warnings.warn(
            f"input's size at dim={feature_dim} does not match num_features. You can silence this "
            "warning by not passing in num_features, which is not used because affine=False",
            stacklevel=3)

    def _normalize(self, input):
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                               self.training or not self.track_running_stats,
                               self.momentum if self.momentum is not None else 0.0, self.eps)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_features(input)
        if input.dim() == self._get_no_batch_dim():
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys,
                              unexpected_keys, error_msgs):
        # Before version 2 running statistics were saved even if they were not tracked.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            names = ("running_mean", "running_var")
            stale = [prefix + name for name in names if prefix + name in state_dict]
            if stale:
                listed = " and ".join(f'"{key}"' for key in stale)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {listed} for {type(self).__name__} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, "
                    "this may be expected because "
                    f"{type(self).__name__} does not track running stats by default since 0.4.0. "
                    "Please remove these keys from state_dict. If the running stats are actually "
                    f"needed, instead set track_running_stats=True in {type(self).__name__} to "
                    f"enable them. See the documentation of {type(self).__name__} for details.")
                for key in stale:
                    state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)


class InstanceNorm1d(_InstanceNorm):
    """Normalise each channel of each sample over its length, as batch norm does over the batch.

    Without running statistics (the default) those of the input are used in evaluation too.

    Shape: (N, C, L) or (C, L). Ulyanov, Vedaldi and Lempitsky, Instance normalization, 2016.

    Example:
        >>> nn.InstanceNorm1d(2)(flambeau.ones(1, 2, 4)).sum().item()
        0.0
    """

    _n_dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalise each channel of each image; see `InstanceNorm1d`."""

    _n_dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalise each channel of each volume; see `InstanceNorm1d`."""

    _n_dims = 3


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """An `InstanceNorm1d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """An `InstanceNorm2d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """An `InstanceNorm3d` that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm3d
