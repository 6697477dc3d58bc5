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


@pytest.mark.parametrize("name, said", [
    ("item", "calling .item"), ("tolist", "calling .item|Cannot access data pointer"),
    ("numpy", "Cannot access data pointer"), ("data_ptr", "Cannot access data pointer"),
])
def test_methods_of_the_class_say_the_same(name, said):
    with pytest.raises(RuntimeError, match=said):
        vmap(lambda z: getattr(torch.Tensor, name)(z))(torch.ones(2))


def test_methods_of_the_class_tell_the_form_of_a_slice():
    seen = []

    def look(z):
        seen.append((torch.Tensor.stride(z), torch.Tensor.storage_offset(z), torch.Tensor.dim(z)))
        return z
    vmap(look)(torch.ones(2, 3, 4).transpose(1, 2))
    assert seen == [((1, 4), 0, 2)]
