"""What the processor can do, as the system says it."""
import os
import platform

import pytest

import flambeau as torch
from flambeau.cpu import _capabilities


def test_what_every_machine_has():
    found = torch.cpu.get_capabilities()
    assert found["architecture"] == platform.machine()
    assert found["num_logical_cores"] == os.cpu_count()
    assert found is torch.cpu.get_capabilities()
    with pytest.raises(TypeError):
        found["num_logical_cores"] = 0


def test_instruction_sets_of_a_described_machine(monkeypatch):
    monkeypatch.setattr(_capabilities, "_cores", lambda: [
        {"processor": "0", "model name": "A", "flags": "pni avx2 avx512f avx512vl avx512bw "
         "avx512dq avx512_bf16", "physical id": "0", "core id": core} for core in ("0", "0", "1")])
    _capabilities.get_capabilities.cache_clear()
    try:
        found = torch.cpu.get_capabilities()
        assert found["sse3"] and found["avx512_f"] and not found["avx512_vnni"]
        assert (found["cpu_name"], found["num_physical_cores"], found["num_sockets"]) == ("A", 2, 1)
        assert torch.cpu._is_avx2_supported() and torch.cpu._is_avx512_bf16_supported()
        assert not torch.cpu._is_vnni_supported() and not torch.cpu._is_amx_tile_supported()
    finally:
        _capabilities.get_capabilities.cache_clear()


def test_the_private_name():
    assert torch._C._cpu._get_cpu_capability() == torch.cpu.get_capabilities()
