"""Steps of pipes, under the name of PyTorch's module."""

from flambeau.utils.data.datapipes._iter_steps import (
    ConcaterIterDataPipe,
    DemultiplexerIterDataPipe,
    ForkerIterDataPipe,
    MultiplexerIterDataPipe,
    ZipperIterDataPipe,
)

__all__ = ["ConcaterIterDataPipe", "DemultiplexerIterDataPipe", "ForkerIterDataPipe",
           "MultiplexerIterDataPipe", "ZipperIterDataPipe"]
