"""`Compare`, which prints measurements side by side."""
from flambeau.utils.benchmark.compare import Compare

__all__ = ["Compare"]
