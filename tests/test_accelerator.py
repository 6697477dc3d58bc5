"""Machines without accelerators, and the CPU as a device."""
from __future__ import annotations

import pytest

import flambeau
from flambeau import accelerator, cpu


def test_there_is_none():
    assert not accelerator.is_available() and accelerator.current_accelerator() is None
    assert accelerator.device_count() == 0
    for name in ("synchronize", "current_device_index", "memory_allocated"):
        with pytest.raises(RuntimeError, match="none is available"):
            getattr(accelerator, name)()
    with accelerator.device_index(None):
        pass
    assert all(hasattr(accelerator, name) for name in accelerator.__all__)


def test_the_cpu_is_one_device():
    assert cpu.is_available() and cpu.device_count() == 1 and cpu.current_device() == "cpu"
    before = cpu.current_stream()
    with cpu.stream(cpu.Stream()):
        assert cpu.current_stream() is not before
        cpu.synchronize()
    assert cpu.current_stream() is before and "architecture" in cpu.get_capabilities()


def test_dlpack_shares_memory():
    x = flambeau.arange(6.0).reshape(2, 3)
    y = flambeau.utils.dlpack.from_dlpack(flambeau.utils.dlpack.to_dlpack(x.t()))
    y[0, 0] = 7.0
    assert x[0, 0] == 7.0 and y.shape == (3, 2)
