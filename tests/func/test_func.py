"""The package of transforms: its names, and what a tensor inside of them wraps."""
import pytest

import flambeau as torch
from flambeau import func


@pytest.mark.parametrize("name", func.__all__)
def test_names_belong_to_the_package(name):
    function = getattr(func, name)
    assert function.__name__ == name and function.__doc__


def test_tensors_inside_of_vmap_can_be_unwrapped():
    seen = []

    def look(x):
        seen.append(tuple(func.debug_unwrap(x).shape))
        return x

    x = torch.ones(3, 2)
    torch.vmap(look)(x)
    torch.vmap(torch.vmap(look))(x)
    assert seen == [(3, 2), (3, 2)]
    assert func.debug_unwrap(x) is x


def test_one_level_alone():
    seen = []

    def look(x):
        inner = func.debug_unwrap(x, recurse=False)
        seen.append((tuple(x.shape), tuple(inner.shape)))
        return x

    torch.vmap(torch.vmap(look))(torch.ones(3, 2))
    assert seen == [((), (2,))]
