"""Parts of the benchmarks by the names of their modules."""

import flambeau


def test_parts_by_the_names_of_their_modules():
    from flambeau.utils import benchmark
    from flambeau.utils.benchmark.utils import common, compare, timer
    assert common.Measurement is benchmark.Measurement and timer.Timer is benchmark.Timer
    assert compare.Compare is benchmark.Compare
    assert common.ordered_unique([3, 1, 3]) == [3, 1]
    before = flambeau.get_num_threads()
    with common.set_torch_threads(1):
        assert flambeau.get_num_threads() == 1
    assert flambeau.get_num_threads() == before
