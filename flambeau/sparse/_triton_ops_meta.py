"""Parameters of kernels, found by trying: a search, and a memory of what it found."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

_PARAMETERS = {
    "scatter_mm": ("GROUP_SIZE", "SPLIT_N", "TILE_M", "TILE_N", "num_stages", "num_warps"),
    "bsr_dense_addmm": ("GROUP_SIZE_ROW", "SPLIT_N", "num_stages", "num_warps"),
    "_int_bsr_dense_addmm": ("GROUP_SIZE_ROW", "SPLIT_N", "num_stages", "num_warps")}

_found: dict[Any, dict[Any, Any]] = {}      # (op, device, version): key: values in order of name


def _get_device_name() -> str:
    return "cpu"


def update(op: str, device_name: str, version: Any, key: Any, value: Any) -> None:
    """Remember the parameters, by their names in order, of an op called with such a key."""
    _found.setdefault((op, device_name, version), {})[key] = value


def get_meta(op: str, key: Any, device_name: str | None = None, version: Any = None,
             exact: bool = False) -> Any:
    """The parameters that are remembered, by name; None where there are none. A key with "*" in
    some places gives all that agree elsewhere, by key."""
    if version is None:
        import flambeau
        version = (0, flambeau.float16, 0.5)
    if op not in _PARAMETERS:
        raise NotImplementedError(f"names for op={op!r}")
    known = _found.get((op, device_name or _get_device_name(), version), {})
    names = _PARAMETERS[op]
    if "*" in key:
        return {one: dict(zip(names, values)) for one, values in known.items()
                if len(one) == len(key) and all(k in ("*", o) for k, o in zip(key, one))} or None
    values = known.get(key)
    return None if values is None else dict(zip(names, values))


def minimize(target_func: Callable[..., Any], initial_parameters: Any, reference_parameters: Any,
             step_func: Callable[..., Any], max_step: int = 2, verbose: bool = False,
             all_values: Any = None) -> Any:
    """Find parameters with a small target by changing one after the other, as long as that helps.

    `step_func(name, value, step, parameters)` gives the value that lies so many steps away.
    Returns the parameters, by how many per cent they are better than the reference, the time of
    the best, and a text that says by what share the target grows where one parameter is changed.
    """
    tried: dict[Any, Any] = {}

    def target(parameters: Any) -> Any:
        key = tuple(sorted(parameters.items()))
        if key not in tried:
            tried[key] = target_func(parameters)
        return tried[key]

    best, least = dict(initial_parameters), target(initial_parameters)
    reference = target(reference_parameters)
    steps = [sign * n for n in range(1, max_step + 1) for sign in (1, -1)]
    better = True
    while better:
        better = False
        for name in sorted(best):
            for step in steps:
                value = step_func(name, best[name], step, best)
                if value == best[name]:
                    continue
                other = {**best, name: value}
                found = target(other)
                if found < least:
                    best, least, better = other, found, True
                    if verbose:
                        print(f"{name}={value}: {found}")
    gain = 0 if not reference else 100 * (1 - least / reference)
    shares = []
    for name in sorted(best):
        near = [target({**best, name: value}) for value in
                (step_func(name, best[name], step, best) for step in steps) if value != best[name]]
        if near and least:
            shares.append(f"{name}={best[name]} ({100 * (min(near) / least - 1):.1f} %)")
    return best, gain, least, ", ".join(shares)
