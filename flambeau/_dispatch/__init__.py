"""What `__torch_dispatch__` is shown: the ops of PyTorch's dispatcher, below autograd.

`forms` says how a call is shown, `level` hands the calls over and records what comes back.
"""
