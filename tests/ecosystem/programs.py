"""The programs of this folder: what they need, how they are run, what they print."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TIME_LIMIT = 300        # seconds; a loaded machine takes several times what a quiet one does
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    **{f"{scheme}_proxy": "http://127.0.0.1:9" for scheme in ("http", "https")},
}
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


class Program:
    """A file in `programs/`, and what its header says."""

    def __init__(self, path: Path):
        self.path, self.name = path, path.stem
        self.recorded = HERE / "data" / f"{self.name}.json"
        source = path.read_text()
        self.needs = re.findall(r"\w+", _header(source, "needs") or "")
        self.tolerance = float(_header(source, "tolerance") or 1e-4)

    def run(self, folder: Path, *launcher: str, search: Sequence[Path] = ()) -> dict[str, Any]:
        """What it prints last, run in `folder` by `python [launcher …]`."""
        environment = {**os.environ, **OFFLINE, **ONE_THREAD, "HOME": str(folder),
                       "PYTHONPATH": os.pathsep.join(map(str, search))}
        ran = subprocess.run([sys.executable, *launcher, str(self.path)], cwd=folder,
                             env=environment, capture_output=True, text=True, timeout=TIME_LIMIT)
        if ran.returncode:
            raise RuntimeError(f"{self.name} ended with status {ran.returncode}:\n{ran.stderr}")
        return json.loads(ran.stdout.strip().splitlines()[-1])


def _header(source: str, key: str) -> str | None:
    found = re.search(rf"^# {key}: (.*)$", source, re.MULTILINE)
    return found and found[1]


PROGRAMS = {path.stem: Program(path) for path in sorted((HERE / "programs").glob("with_*.py"))}
