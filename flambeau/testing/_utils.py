"""Random numbers in tests: states that are kept, and seeds that are set before each call."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import flambeau


def wrapper_set_seed(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `op` gives after `manual_seed(42)`; the state of random numbers stays what it was.

    >>> from flambeau.testing._utils import wrapper_set_seed
    >>> bool(wrapper_set_seed(flambeau.rand, 2).eq(wrapper_set_seed(flambeau.rand, 2)).all())
    True
    """
    with freeze_rng_state():
        flambeau.manual_seed(42)
        return op(*args, **kwargs)


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """The state of random numbers is afterwards what it was before."""
    state = flambeau.get_rng_state()
    try:
        yield
    finally:
        flambeau.set_rng_state(state)
