"""Files of safetensors whose weights are float8, with a scale for every block."""
from __future__ import annotations

from typing import Any

import flambeau
from flambeau import Tensor
from flambeau.core.tensor import wrap
from flambeau.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from flambeau.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata

__all__ = ["QuantizedHuggingFaceStorageReader"]

_SCALE = "_scale_inv"


class QuantizedHuggingFaceStorageReader(HuggingFaceStorageReader):
    """Reads weights that are in blocks of `block_size` × `block_size` values, each to be
    multiplied by an entry of `weight_scale_inv`; gives them as `target_dtype`."""

    def __init__(self, path: str, thread_count: int = 1,
                 target_dtype: flambeau.dtype = flambeau.float32, block_size: int = 128):
        super().__init__(path, thread_count)
        self.target_dtype, self.block_size = target_dtype, block_size
        self._scaled: set[str] = set()

    def read_metadata(self) -> Metadata:
        """What is there, without the scales."""
        found = super().read_metadata()
        for name in [n for n in found.state_dict_metadata if n.endswith(_SCALE)]:
            weight = name.removesuffix(_SCALE)
            if weight in found.state_dict_metadata:
                self._scaled.add(weight)
                del found.state_dict_metadata[name]
                about = found.state_dict_metadata[weight]
                assert isinstance(about, TensorStorageMetadata)
                about.properties.dtype = self.target_dtype
        self._places = dict(found.storage_data)
        return found

    def _tensor(self, file: Any, name: str) -> Tensor:
        values = wrap(file.get_tensor(name))
        if name not in self._scaled:
            return values
        scale = self._scale(name + _SCALE)
        rows, columns = values.shape
        scale = scale.repeat_interleave(self.block_size, 0)[:rows]
        scale = scale.repeat_interleave(self.block_size, 1)[:, :columns]
        return (values.float() * scale).to(self.target_dtype)

    def _scale(self, name: str) -> Tensor:
        from pathlib import Path

        from safetensors import safe_open
        where = next(path for index, path in self._places.items() if index.fqn == name)
        with safe_open(Path(self.path) / where, framework="numpy") as file:
            return wrap(file.get_tensor(name)).float()
