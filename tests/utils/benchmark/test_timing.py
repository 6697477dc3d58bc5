"""How long a statement takes."""


import flambeau
from flambeau.utils.benchmark import Timer


def test_a_timer_runs_the_statement():
    count = []
    timer = Timer("count.append(1)", globals={"count": count}, num_threads=1)
    assert timer.timeit(100).number_per_run == 100 and len(count) >= 100
    found = Timer("x + x", "x = torch.ones(2)").blocked_autorange(min_run_time=0.002)
    assert found.median > 0 and sum(found.raw_times) >= 0.002
    assert Timer("pass").adaptive_autorange(threshold=10, max_run_time=0.1).median > 0
    assert flambeau.get_num_threads() >= 1
