"""How much memory was for what, over time."""
import json

import flambeau as torch
from flambeau.profiler._memory_profiler import Action, Category, MemoryProfileTimeline


class Key:
    def __init__(self, device="cpu"):
        self.device = torch.device(device)


class Categories:
    def __init__(self, **found):
        self.found = found

    def get(self, key, version):
        return self.found.get(key.name, {}).get(version)


def profile():
    weights, other, far = Key(), Key(), Key("meta")
    weights.name, other.name, far.name = "weights", "other", "far"

    class Profile:
        timeline = ((-1, Action.PREEXISTING, (weights, 0), 100),
                    (5100, Action.CREATE, (other, 0), 40),
                    (5200, Action.CREATE, (far, 0), 7),
                    (9900, Action.INCREMENT_VERSION, (other, 0), 40),
                    (12000, Action.DESTROY, (other, 1), 40))
        _categories = Categories(weights={0: Category.PARAMETER},
                                 other={0: Category.ACTIVATION, 1: Category.GRADIENT})
    return Profile()


def test_sizes_over_time(tmp_path):
    timeline = MemoryProfileTimeline(profile())
    times, sizes = timeline._coalesce_timeline("cpu")
    assert times == [5, 5, 9, 12] and [sum(row) for row in sizes] == [100, 140, 140, 100]
    assert {len(row) for row in sizes} == {9} and not any(row[0] for row in sizes)
    timeline.export_memory_timeline(str(tmp_path / "memory.json"), "cpu")
    assert json.loads((tmp_path / "memory.json").read_text()) == [times, sizes]
    assert MemoryProfileTimeline(profile())._coalesce_timeline("meta")[0] == [5]
