"""The ops under the names of PyTorch's dispatcher, as `torch.ops.aten`, and what looks below
autograd (`__torch_dispatch__`), have them.

    schemas     PyTorch's schemas and tags, by name and overload
    keys        the dispatch keys
    forms       as which overload, with which arguments, modes see an op
    level       hands the calls of a mode over, and records what comes back
    subclass    … of tensors whose class overrides `__torch_dispatch__`
    functions   what computes the names that are no ops of their own here
"""
