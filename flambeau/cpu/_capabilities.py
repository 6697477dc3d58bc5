"""What the processor can do: its instruction sets, caches and cores, as the system tells them."""
from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

# PyTorch's name of an instruction set, and Linux's where it is another.
_X86 = {
    **{name: name for name in (
        "sse sse2 ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni avx_vnni_int8 avx_vnni_int16 "
        "avx_ne_convert avx512_bf16 avx512_fp16 avx512_4vnniw avx512_4fmaps avx512_vp2intersect "
        "avx512_vbmi2 avx512_bitalg avx512_vnni avx512_vpopcntdq avx10_1 avx10_2 amx_tile amx_int8 "
        "amx_bf16 amx_fp16 fma4 f16c bmi2 popcnt aes clflush clflushopt clwb").split()},
    **{f"avx512_{part}": f"avx512{part}" for part in "f bw cd dq vl vbmi ifma".split()},
    "sse3": "pni", "fma3": "fma", "bmi": "bmi1", "lzcnt": "abm", "sha": "sha_ni"}
_ARM = {"neon": "asimd", "fp16_arith": "fphp", "bf16": "bf16", "i8mm": "i8mm", "dot": "asimddp",
        "sve": "sve", "sve2": "sve2", "sve_bf16": "svebf16", "atomics": "atomics", "aes": "aes",
        "sha1": "sha1", "sha2": "sha2", "rdm": "asimdrdm", "fcma": "fcma", "jscvt": "jscvt",
        "sme": "sme", "sme2": "sme2"}


@lru_cache(None)
def get_capabilities() -> Mapping[str, bool | int | str]:
    """The processor: `architecture`, `cpu_name`, the numbers of sockets and cores, the sizes of
    its caches in bytes, and for each instruction set whether there is one.

    What the system does not tell is left out: off Linux, all but the architecture and the cores.

    >>> get_capabilities()["num_logical_cores"] > 0
    True
    """
    machine = platform.machine()
    found: dict[str, bool | int | str] = {
        "architecture": machine, "num_logical_cores": os.cpu_count() or 1}
    cores = _cores()
    if cores:
        first = cores[0]
        sets = _X86 if "flags" in first else _ARM
        has = set((first.get("flags") or first.get("Features") or "").split())
        found |= {name: flag in has for name, flag in sets.items()}
        found["cpu_name"] = first.get("model name", machine)
        sockets = {core.get("physical id", "0") for core in cores}
        found["num_sockets"] = len(sockets)
        found["num_physical_cores"] = len(
            {(core.get("physical id"), core.get("core id", number))
             for number, core in enumerate(cores)})
    return MappingProxyType(found | _caches())


def _cores() -> list[dict[str, str]]:
    """What Linux says of each core."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return []
    return [dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", part, re.MULTILINE))
            for part in text.strip().split("\n\n") if part.startswith("processor")]


def _caches() -> dict[str, bool | int | str]:
    """The sizes of the first core's own caches."""
    sizes: dict[str, bool | int | str] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((folder / name).read_text().strip()
                                 for name in ("level", "type", "size"))
        except OSError:
            continue
        name = {("1", "Data"): "l1d_cache_size", ("2", "Unified"): "l2_cache_size"}.get(
            (level, kind))
        if name is not None:
            sizes[name] = int(size.rstrip("KM")) << (20 if size.endswith("M") else 10)
    return sizes


def _has(name: str) -> bool:
    return bool(get_capabilities().get(name, False))


def _is_avx2_supported() -> bool:
    """Are there AVX2's instructions?"""
    return _has("avx2")


def _is_avx512_supported() -> bool:
    """Are there AVX-512's instructions that kernels need: F, VL, BW and DQ?"""
    return all(_has(f"avx512_{part}") for part in ("f", "vl", "bw", "dq"))


def _is_avx512_bf16_supported() -> bool:
    """Are there AVX-512's products of bfloat16 numbers?"""
    return _is_avx512_supported() and _has("avx512_bf16")


def _is_vnni_supported() -> bool:
    """Are there AVX-512's products of 8-bit integers?"""
    return _has("avx512_vnni")


def _is_amx_tile_supported() -> bool:
    """Are there AMX's tiles?"""
    return _has("amx_tile")


def _is_amx_fp16_supported() -> bool:
    """Are there AMX's products of half-precision numbers?"""
    return _has("amx_fp16")


def _init_amx() -> bool:
    """Ask the system for AMX's tiles: False, since no kernel here uses them."""
    return False


_get_cpu_capability = get_capabilities

__all__ = ["get_capabilities"]
