"""By which name pickles know what says that it is torch's."""
import sys


def is_named_torch() -> bool:
    """Is flambeau what `import torch` gives here? Then pickles name what PyTorch's name."""
    return sys.modules.get("torch") is sys.modules["flambeau"]
