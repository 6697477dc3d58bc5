"""Slices of vmap, asked for what they do not have."""
import copy

import pytest

import flambeau as torch
from flambeau.func import vmap


def test_what_has_no_memory_says_so():
    """Recorded from PyTorch."""
    x = torch.ones(2, 2)
    for said, look in (("Cannot access storage of BatchedTensorImpl", lambda z: z.storage()),
                       ("Cannot access storage of BatchedTensorImpl", lambda z: copy.deepcopy(z)),
                       ("accessing `data` under vmap", lambda z: z.data),
                       ("calling Tensor.requires_grad_|call Tensor.requires_grad_",
                        lambda z: z.requires_grad_()),
                       ("doesn't work on out=", lambda z: torch.add(z, 1, out=torch.empty(2))),
                       ("calling .item", lambda z: torch.tensor(z)),
                       ("calling .item", lambda z: torch.tensor([z.sum(), z.sum()])),
                       ("Cannot access data pointer", lambda z: z.data_ptr())):
        with pytest.raises((RuntimeError, NotImplementedError), match=said):
            vmap(look)(x)
