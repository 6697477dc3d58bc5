"""Steps of pipes, under the name of PyTorch's module."""

from flambeau.utils.data.datapipes._iter_steps import ShardingFilterIterDataPipe

__all__ = ["ShardingFilterIterDataPipe"]
