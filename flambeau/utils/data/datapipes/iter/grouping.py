"""Steps of pipes, under the name of PyTorch's module."""

from flambeau.utils.data.datapipes._iter_steps import (
    BatcherIterDataPipe,
    GrouperIterDataPipe,
    UnBatcherIterDataPipe,
)

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]
