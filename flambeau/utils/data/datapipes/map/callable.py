"""Steps of pipes, under the name of PyTorch's module."""

from flambeau.utils.data.datapipes._map_steps import MapperMapDataPipe

__all__ = ["MapperMapDataPipe"]
