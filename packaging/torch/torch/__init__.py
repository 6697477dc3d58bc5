"""PyTorch's name for flambeau, where the distribution of this name is installed."""
import sys
from pathlib import Path

_left = [*Path(__file__).parent.glob("_C*"), *Path(__file__).parent.glob("lib")]
if _left:
    raise ImportError(f"torch: {_left[0]} belongs to PyTorch, over which flambeau's torch was "
                      "installed. Uninstall torch, delete this folder, and install one of the two.",
                      name="torch")
del sys.modules[__name__]       # flambeau takes the name
import flambeau.as_torch
