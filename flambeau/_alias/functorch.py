"""`import functorch`, as in torch.py."""
import sys

del sys.modules[__name__]
import torch  # from now on both names are found

__import__(__name__)
