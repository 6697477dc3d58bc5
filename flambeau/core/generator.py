"""Sources of random numbers, and the one that ops draw from when none is given."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

from flambeau._support.c_functions import ReadOnly, counted, type_name
from flambeau._support.own_methods import belong
from flambeau.core import devices, late_bound
from flambeau.core.tensor import Tensor, wrap
from flambeau.kernels import set_error_name
from flambeau.kernels.creation.random import STATE_BYTES, Stream


def _not_there(kind: str) -> RuntimeError:
    """The error of a generator on a device of another kind than the CPU."""
    if kind == "cuda":
        from flambeau._support.devices.backends import no_cuda_library
        return no_cuda_library("get CUDA generator")
    return RuntimeError({
        "xpu": "Cannot get XPU generator without ATen_xpu library.",
        "mps": "Cannot execute getNewGenerator() without MPS backend.",
        "mtia": "Cannot execute getNewGenerator() without MTIA backend.",
        "hpu": "Backend doesn`t support getNewGenerator()",
    }.get(kind, f"{kind.upper()} device type not an accelerator."))


@set_error_name("torch._C.Generator")
class Generator:
    """A source of random numbers with a state of its own, for the `generator=` of random ops.

    Example:
        >>> import flambeau
        >>> generator = Generator().manual_seed(0)
        >>> flambeau.randperm(4, generator=generator)
        tensor([0, 1, 3, 2])
    """

    __slots__ = ("__weakref__", "_device", "_stream")

    def __init__(self, *args: Any, **kwargs: Any):
        device, = late_bound.bound(("Generator(Device? device=None)",), args, kwargs)
        kind = "cpu" if device is None else devices.device(device).type
        if kind != "cpu":
            raise _not_there(kind)
        self._device = devices.cpu
        self._stream = Stream()

    @ReadOnly
    def device(self) -> devices.device:
        """The device: the CPU."""
        return self._device

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {id(self):#x}>"

    @counted
    def manual_seed(self, seed: int) -> Generator:
        """Start over from `seed`, any integer of 64 bits; returns the generator."""
        if type(seed) is bool or not isinstance(seed, (int, np.integer)):
            raise RuntimeError(f"manual_seed expected a long, but got {type_name(seed)}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._stream.seed(int(seed) % 2**64)
        return self

    @counted
    def seed(self) -> int:
        """Start over from a seed that the operating system draws, and return it."""
        self._stream.seed(int.from_bytes(os.urandom(8), "little"))
        return self._stream.initial_seed()

    @counted
    def initial_seed(self) -> int:
        """The seed that the generator started from."""
        return self._stream.initial_seed()

    @counted
    def get_state(self) -> Tensor:
        """The state, as a tensor of bytes."""
        return wrap(self._stream.get_state())

    @counted
    def set_state(self, new_state: Tensor) -> Generator:
        """Continue from what `get_state` gave."""
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type_name(new_state)}")
        state = new_state._array
        if state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.size != STATE_BYTES:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found "
                               f"the input RNG state size to be {state.size}")
        self._stream.set_state(state.reshape(-1))
        return self

    @counted
    def clone_state(self) -> Generator:
        """A generator of its own that will give the same numbers."""
        twin = Generator(self.device)
        twin._stream = self._stream.copy()
        return twin

    @counted
    def get_offset(self) -> int:
        """Not for this kind of generator: raises."""
        raise RuntimeError("CPU Generator does not use offset")

    @counted
    def set_offset(self, offset: int) -> None:
        """Not for this kind of generator: raises."""
        if type(offset) is not int:
            raise RuntimeError(f"manual_offset expected a long, but got {type(offset).__name__}")
        raise RuntimeError("CPU Generator does not use offset")

    @counted
    def graphsafe_get_state(self) -> Generator:
        """Not for this kind of generator: raises."""
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    @counted
    def graphsafe_set_state(self, state: Generator) -> Generator:
        """Not for this kind of generator: raises."""
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type_name(state)}")
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    def __reduce__(self) -> tuple[Any, ...]:
        return Generator, (self.device,), (self.initial_seed(), None, self.get_state())

    def __setstate__(self, state: tuple[int, None, Tensor]) -> None:
        self.manual_seed(state[0])
        self.set_state(state[2])


belong("flambeau._C", Generator)
default_generator = Generator()
