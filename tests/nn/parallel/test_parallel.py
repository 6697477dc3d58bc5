"""The package: what needs processes is imported when first used."""
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau.nn import parallel


def test_wrappers_of_processes_come_late():
    script = ("import sys, flambeau.nn.parallel as p; name = 'flambeau.nn.parallel.distributed'; "
              "early = name in sys.modules; p.DistributedDataParallel; "
              "print(early, name in sys.modules)")
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.split() == ["False", "True"], found.stderr


def test_what_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        parallel.Nothing


def test_its_names():
    assert set(parallel.__all__) == {"DataParallel", "DistributedDataParallel", "data_parallel",
                                     "gather", "parallel_apply", "replicate", "scatter"}
    layer = torch.nn.Linear(2, 1)
    one, two = parallel.parallel_apply([layer, layer], [torch.ones(1, 2), torch.zeros(1, 2)])
    assert torch.equal(one, layer(torch.ones(1, 2))) and torch.equal(two[0], layer.bias)
