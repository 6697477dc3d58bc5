"""Generators of random numbers, and the one that ops use when none is given.

A seed gives the numbers that PyTorch gives on a CPU, on every machine, with any number of threads.

>>> import flambeau
>>> generator = flambeau.manual_seed(0)
>>> flambeau.rand(2)
tensor([0.4963, 0.7682])
"""

from __future__ import annotations

from collections.abc import Generator as Iterator
from contextlib import contextmanager
from typing import Any

from flambeau.core.generator import Generator, default_generator
from flambeau.core.tensor import Tensor

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
           "thread_safe_generator"]


def manual_seed(seed: Any) -> Generator:
    """Start the default generator over from `seed`, and return it."""
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Start the default generator over from a random seed, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


def thread_safe_generator() -> Generator | None:
    """The generator that this thread should use in place of the default one; None if there is none.

    Generators may be shared between threads here, so there never is.
    """
    return None


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True, _caller: str = "fork_rng",
             _devices_kw: str = "devices", device_type: str | None = None) -> Iterator[None]:
    """Leave the default generator after the block as it was before.

    Example:
        >>> import flambeau
        >>> generator = flambeau.manual_seed(0)
        >>> with fork_rng():
        ...     inside = flambeau.rand(1)
        >>> inside == flambeau.rand(1)
        tensor([True])
    """
    if not enabled:
        yield
        return
    if devices is not None and list(devices):
        raise AssertionError("Torch not compiled with CUDA enabled")
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)

