"""Pieces of tensors in files of safetensors, put together into whole files."""
from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

CUSTOM_METADATA_KEY = "DCP_SHARDING_INFO"
SAVED_OFFSETS_KEY = "saved_offsets"
SHARDED_DIR_NAME = "sharded"
SUFFIX = ".safetensors"
_metadata_fn = "model.safetensors.index.json"


def consolidate_safetensors_files(input_dir: str, output_dir: str,
                                  fqn_to_index_mapping: dict[str, int],
                                  num_threads: int = 1) -> None:
    """Put the pieces that several processes have written into `input_dir` together, into files of
    `output_dir`: each name into the file whose number the mapping gives."""
    last = max(fqn_to_index_mapping.values(), default=1)
    names = {fqn: f"model-{at:05d}-of-{last:05d}{SUFFIX}"
             for fqn, at in fqn_to_index_mapping.items()}
    pieces = _pieces(input_dir)
    sizes = _consolidate_safetensors_files(pieces, output_dir, names, num_threads)
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
    numbers = sorted(set(fqn_to_index_mapping.values()))
    last = max(numbers, default=1)
    names = {fqn: f"model-{at:05d}-of-{last:05d}{SUFFIX}"
             for fqn, at in fqn_to_index_mapping.items()}
    mine = {number for i, number in enumerate(numbers) if i % world_size == rank}
    own = {fqn: names[fqn] for fqn, at in fqn_to_index_mapping.items() if at in mine}
    pieces = _pieces(input_dir)
    sizes = _consolidate_safetensors_files(pieces, output_dir, own, num_threads)
    if together:
        every: list[Any] = [None] * world_size
        dist.all_gather_object(every, sizes, group=process_group)
        sizes = {name: size for part in every for name, size in part.items()}
    if rank == 0:
        _write_index(output_dir, names, sizes)
    if together:
        dist.barrier(group=process_group)


def _pieces(input_dir: str) -> dict[str, list[tuple[Path, list[int], list[int]]]]:
    """For each name its pieces: in which file, where in the whole, and how large."""
    from safetensors import safe_open
    found: dict[str, list[tuple[Path, list[int], list[int]]]] = {}
    for path in sorted(Path(input_dir).glob(f"*{SUFFIX}")):
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get(CUSTOM_METADATA_KEY, "{}"))
            for name in file.keys():                            # noqa: SIM118
                sizes = file.get_slice(name).get_shape()
                offsets = about.get(name, {}).get(SAVED_OFFSETS_KEY, [0] * len(sizes))
                found.setdefault(name, []).append((path, offsets, sizes))
    return found


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


def _whole(fqn: str, pieces: list[tuple[Path, list[int], list[int]]]) -> np.ndarray:
    from safetensors import safe_open
    shape = [max(offsets[d] + sizes[d] for _, offsets, sizes in pieces)
             for d in range(len(pieces[0][2]))]
    whole = None
    for path, offsets, sizes in pieces:
        with safe_open(path, framework="numpy") as file:
            array = file.get_tensor(fqn)
        if whole is None:
            whole = np.empty(shape, array.dtype)
        whole[tuple(slice(o, o + n) for o, n in zip(offsets, sizes))] = array
    assert whole is not None
    return whole


def _write_index(output_dir: str, names: dict[str, str], sizes: dict[str, int]) -> None:
    index = {"metadata": {"total_size": sum(sizes.values())},
             "weight_map": dict(sorted(names.items()))}
    (Path(output_dir) / _metadata_fn).write_text(json.dumps(index, indent=2))
