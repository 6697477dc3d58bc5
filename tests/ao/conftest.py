"""Tests here share `quantization_cases`; pytest's importlib mode leaves the folder off the path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
