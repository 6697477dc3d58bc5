"""What the ways to train keep and send is what the formulas of docs/distributed.md say."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "strategies.py"


def formulas(n):
    """In units of P, the size of the parameters; A, that of a layer's activations, is P / 64."""
    part, a = (n - 1) / n, 1 / 64
    whole = 4 * a                           # of a key, or of a value
    return {"DistributedDataParallel": (4, 2 * part),
            "ZeroRedundancyOptimizer": (2 + 2 / n, 3 * part),
            "FullyShardedDataParallel": (4 / n, 3 * part), "fully_shard": (4 / n, 3 * part),
            "tensor parallel": (4 / n, 7 * 2 * part * a),           # the first input has no grad
            "pipeline": (4 / n, min(2, n - 1) * a),
            "context parallel": (3 * whole / n, whole * (4 * part + 2))}


@pytest.mark.parametrize("size", [2, 4])
def test_bytes_kept_and_sent(size, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "flambeau", "run", "--nproc", str(size), str(PROGRAM)],
        capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(tmp_path)})
    found = dict(re.findall(r"^(\S.*?) +keeps +(\S+ P  sends +\S+) P", done.stdout, re.MULTILINE))
    wanted = formulas(size)
    assert found.keys() == wanted.keys(), done.stderr
    for name, text in found.items():
        kept, sent = map(float, text.split(" P  sends "))
        assert abs(kept - wanted[name][0]) < 0.002, name
        assert abs(sent - wanted[name][1]) < 0.002, name
