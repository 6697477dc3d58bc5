"""Binding to processors, on a machine made of files; words from PyTorch."""
from __future__ import annotations

import os

import pytest

from flambeau.numa import binding
from flambeau.numa.binding import AffinityMode, NumaOptions

# two sockets of one node each; each node has four processors, two of a core
FILES = {f"/cpu/cpu{i}/topology/physical_package_id": f"{i // 4}\n" for i in range(8)} | {
    f"/cpu/cpu{i}/topology/thread_siblings_list": f"{i // 2 * 2}-{i // 2 * 2 + 1}\n"
    for i in range(8)} | {
    f"/cpu/cpu{i}/cache/index3/level": "3\n" for i in range(8)} | {
    f"/cpu/cpu{i}/cache/index3/shared_cpu_list": f"{i // 2 * 2}-{i // 2 * 2 + 1}\n"
    for i in range(8)} | {
    "/node/possible": "0-1\n", "/node/node0/cpulist": "0-3\n", "/node/node1/cpulist": "4-7\n"}


@pytest.fixture
def machine(monkeypatch, tmp_path):
    for path, text in FILES.items():
        file = tmp_path / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(binding, "_NODES", str(tmp_path / "node"))
    monkeypatch.setattr(binding, "_CPUS", str(tmp_path / "cpu"))
    monkeypatch.setattr(binding, "_get_allowed_cpu_indices_for_current_thread",
                        lambda: set(range(8)))
    monkeypatch.setattr(binding, "_get_gpu_count", lambda: 3)
    monkeypatch.setattr(binding, "_get_numa_node_index_for_gpu_index",
                        lambda gpu_index: gpu_index // 2)
    monkeypatch.setattr(binding.shutil, "which", lambda name: name)


@pytest.mark.parametrize(("mode", "expected"), [
    (AffinityMode.NODE, [{0, 1, 2, 3}] * 2 + [{4, 5, 6, 7}]),
    (AffinityMode.SOCKET, [{0, 1, 2, 3}] * 2 + [{4, 5, 6, 7}]),
    (AffinityMode.EXCLUSIVE, [{0, 1}, {2, 3}, {4, 5, 6, 7}]),
    (AffinityMode.CORE_COMPLEX, [{0, 1}, {2, 3}, {4, 5}])])
def test_processors_near_a_gpu(machine, mode, expected):
    assert [binding._get_logical_cpus_to_bind_to(gpu_index=i, numa_options=NumaOptions(mode))
            for i in range(3)] == expected


def test_commands(machine):
    options = NumaOptions(AffinityMode.NODE)
    wrap = binding._maybe_wrap_command_args_with_numa_binding
    assert wrap(("a", "b"), gpu_index=2, numa_options=options) == (
        "numactl", "--physcpubind=4-7", "a", "b")
    assert wrap(("a", "b"), gpu_index=2, numa_options=None) == ("a", "b")


def test_binding_this_process():
    allowed = os.sched_getaffinity(0)
    try:
        binding._bind_all_threads_in_current_process_to_logical_cpus(
            logical_cpu_indices={min(allowed)})
        assert os.sched_getaffinity(0) == {min(allowed)}
    finally:
        binding._bind_all_threads_in_current_process_to_logical_cpus(logical_cpu_indices=allowed)


def test_without_a_gpu(monkeypatch):
    wrap = binding._maybe_wrap_command_args_with_numa_binding
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        wrap(("a",), gpu_index=0, numa_options=NumaOptions(AffinityMode.NODE))
    going_on = NumaOptions(AffinityMode.NODE, should_fall_back_if_binding_fails=True)
    assert wrap(("a",), gpu_index=0, numa_options=going_on) == ("a",)
    assert binding._maybe_wrap_with_numa_binding(abs, gpu_index=0, numa_options=going_on)(-3) == 3
    with pytest.raises(RuntimeError, match="Could not determine CPUs corresponding to numa_node"):
        binding._get_allowed_logical_cpu_indices_for_numa_node(numa_node_index=99)
    monkeypatch.setattr(binding.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="numactl CLI is required for NUMA binding"):
        binding._raise_if_binding_invalid(logical_cpu_indices={0})
