"""Versions: of the interface that flambeau has, as programs written for PyTorch ask for it.

The version of flambeau itself is `importlib.metadata.version("flambeau")`.
"""

from flambeau.torch_version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version = "Unknown"
