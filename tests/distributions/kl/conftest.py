"""Lets the tests here import the cases that lie beside them, and beside the folder."""

import sys
from pathlib import Path

sys.path[:0] = [str(folder) for folder in Path(__file__).resolve().parents[:2]]
