"""PyTorch's name for flambeau.functorch."""
import sys

del sys.modules[__name__]
import torch  # from now on both names are found

__import__(__name__)
