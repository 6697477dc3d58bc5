"""Writes pycute.json: results of the layout algebra of torch.distributed._pycute."""
import importlib.util
import json
from pathlib import Path

from torch.distributed import _pycute

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location(
    "layout_cases", HERE.parent / "distributed/_pycute/layout_cases.py")
cases = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cases)
(HERE / "pycute.json").write_text(json.dumps(cases.results(_pycute), indent=0) + "\n")
