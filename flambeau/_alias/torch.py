"""`import torch` in children of a process whose torch is flambeau: this folder is on their path."""
import os
import sys

del sys.modules[__name__]       # flambeau takes the name
try:
    import flambeau.as_torch
except ModuleNotFoundError as error:
    if error.name != "flambeau":
        raise
    # another interpreter, which may have PyTorch
    sys.path[:] = [path for path in sys.path if path != os.path.dirname(__file__)]
import torch
