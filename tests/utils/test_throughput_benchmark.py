"""How many calls of a module a second several threads make."""

import re
import threading

import pytest

import flambeau as torch
from flambeau.utils import throughput_benchmark


def test_times_and_throughput():
    assert [throughput_benchmark.format_time(**{unit: 3.0}) for unit in (
        "time_us", "time_ms", "time_s")] == ["3.000us", "3.000ms", "3.000s"]
    with pytest.raises(AssertionError, match="only one of"):
        throughput_benchmark.format_time()
    threads = set()
    bench = torch.utils.ThroughputBenchmark(lambda x: threads.add(threading.get_ident()))
    with pytest.raises(RuntimeError, match="provide benchmark inputs"):
        bench.benchmark()
    bench.add_input(3)
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=5)
    assert stats.num_iters == 5 and re.match("Average latency per example: ", str(stats))
    assert len(threads) >= 2


@pytest.mark.parametrize("time, text", [
    ({"time_us": 999.0}, "999.000us"), ({"time_us": 1500.0}, "1.500ms"),
    ({"time_ms": 2000.0}, "2.000s"), ({"time_s": 0.25}, "250.000ms")])
def test_units(time, text):
    assert throughput_benchmark.format_time(**time) == text


def test_derived_figures():
    class Measured:
        latency_avg_ms, num_iters = 2.0, 100

    class Asked:
        num_calling_threads = 4

    stats = throughput_benchmark.ExecutionStats(Measured, Asked)
    assert stats.total_time_seconds == 0.05 and stats.iters_per_second == 2000.0
    assert str(stats) == ("Average latency per example: 2.000ms\n"
                          "Total number of iterations: 100\n"
                          "Total number of iterations per second (across all threads): 2000.00\n"
                          "Total time: 50.000ms")


def test_a_module_is_run():
    bench = torch.utils.ThroughputBenchmark(torch.nn.ReLU())
    assert bench.run_once(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
