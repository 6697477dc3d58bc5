"""What `__torch_dispatch__` is shown: the ops of PyTorch's dispatcher, below autograd.

`forms` says how a call is shown, `common_forms` declares it for each op whose
name or arguments are not those of flambeau's own, `level` hands the calls over and records what
comes back.
"""
