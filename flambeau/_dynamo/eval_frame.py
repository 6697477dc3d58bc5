"""What runs instead of Python's frames: nothing does."""
from flambeau.compiler._module import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Can functions be compiled? No."""
    return False
