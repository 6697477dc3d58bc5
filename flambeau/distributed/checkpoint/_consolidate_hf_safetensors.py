"""Pieces of tensors in files of safetensors, put together into whole files."""
from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flambeau.distributed.checkpoint._hf_utils import (
    CUSTOM_METADATA_KEY,
    SAVED_OFFSETS_KEY,
    SUFFIX,
    _gen_file_name,
    _metadata_fn,
)


def consolidate_safetensors_files(input_dir: str, output_dir: str,
                                  fqn_to_index_mapping: dict[str, int],
                                  num_threads: int = 1) -> None:
    """Put the pieces that several processes have written into `input_dir` together, into files of
    `output_dir`: each name into the file whose number the mapping gives."""
    names = _file_names(fqn_to_index_mapping)
    sizes = _consolidate_safetensors_files(_pieces(input_dir), output_dir, names, num_threads)
    _write_index(output_dir, names, sizes)


def consolidate_safetensors_files_on_every_rank(input_dir: str, output_dir: str,
                                                fqn_to_index_mapping: dict[str, int],
                                                num_threads: int = 1,
                                                process_group: Any = None) -> None:
    """The same, where the processes of a group make some of the files each."""
    from flambeau.distributed import distributed_c10d as dist
    together = dist.is_initialized()
    rank = dist.get_rank(process_group) if together else 0
    world_size = dist.get_world_size(process_group) if together else 1
    names = _file_names(fqn_to_index_mapping)
    numbers = sorted(set(fqn_to_index_mapping.values()))
    mine = {number for i, number in enumerate(numbers) if i % world_size == rank}
    own = {fqn: names[fqn] for fqn, at in fqn_to_index_mapping.items() if at in mine}
    sizes = _consolidate_safetensors_files(_pieces(input_dir), output_dir, own, num_threads)
    if together:
        every: list[Any] = [None] * world_size
        dist.all_gather_object(every, sizes, group=process_group)
        sizes = {name: size for part in every for name, size in part.items()}
    if rank == 0:
        _write_index(output_dir, names, sizes)
    if together:
        dist.barrier(group=process_group)


def _file_names(numbers: dict[str, int]) -> dict[str, str]:
    """The file of each name, by its number."""
    last = max(numbers.values(), default=1)
    return {fqn: _gen_file_name(at, last) for fqn, at in numbers.items()}


class _Piece(NamedTuple):
    """Part of a tensor: in which file, where in the whole, how large and of which type."""

    path: Path
    offsets: list[int]
    sizes: list[int]
    dtype: str


def _pieces(input_dir: str | os.PathLike) -> dict[str, list[_Piece]]:
    """The pieces of each tensor in a folder: the heads of all files say them."""
    from safetensors import safe_open
    found: dict[str, list[_Piece]] = {}
    for path in sorted(Path(input_dir).glob(f"*{SUFFIX}")):
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get(CUSTOM_METADATA_KEY, "{}"))
            for name in file.keys():                            # noqa: SIM118
                part = file.get_slice(name)
                sizes = part.get_shape()
                offsets = about.get(name, {}).get(SAVED_OFFSETS_KEY, [0] * len(sizes))
                found.setdefault(name, []).append(_Piece(path, offsets, sizes, part.get_dtype()))
    return found


def _size_of_whole(pieces: list[_Piece]) -> list[int]:
    return [max(piece.offsets[d] + piece.sizes[d] for piece in pieces)
            for d in range(len(pieces[0].sizes))]


def _consolidate_safetensors_files(pieces: dict[str, Any], output_dir: str,
                                   names: dict[str, str], num_threads: int) -> dict[str, int]:
    """Write the files that `names` says; how many bytes each tensor has."""
    os.makedirs(output_dir, exist_ok=True)
    files: dict[str, list[str]] = {}
    for fqn, file in names.items():
        files.setdefault(file, []).append(fqn)

    def write(file: str) -> dict[str, int]:
        from safetensors.numpy import save_file
        tensors = {fqn: _whole(fqn, pieces[fqn]) for fqn in files[file]}
        save_file(tensors, Path(output_dir) / f".{file}", metadata={"format": "pt"})
        os.replace(Path(output_dir) / f".{file}", Path(output_dir) / file)
        return {fqn: array.nbytes for fqn, array in tensors.items()}
    with ThreadPoolExecutor(max(1, num_threads)) as pool:
        return {fqn: size for part in pool.map(write, files) for fqn, size in part.items()}


def _whole(fqn: str, pieces: list[_Piece]) -> np.ndarray:
    from safetensors import safe_open
    whole = None
    for piece in pieces:
        with safe_open(piece.path, framework="numpy") as file:
            array = file.get_tensor(fqn)
        if whole is None:
            whole = np.empty(_size_of_whole(pieces), array.dtype)
        whole[tuple(slice(o, o + n) for o, n in zip(piece.offsets, piece.sizes))] = array
    assert whole is not None
    return whole


def _write_index(output_dir: str, names: dict[str, str], sizes: dict[str, int]) -> None:
    index = {"metadata": {"total_size": sum(sizes.values())},
             "weight_map": dict(sorted(names.items()))}
    (Path(output_dir) / _metadata_fn).write_text(json.dumps(index, indent=2))
