"""Types of sparse tensors on CUDA, of which nothing can be made."""
import pytest

import flambeau as torch


@pytest.mark.parametrize("name", ["FloatTensor", "HalfTensor", "LongTensor"])
def test_nothing_can_be_made(name):
    cls = getattr(torch.cuda.sparse, name)
    assert cls.__module__ == "torch.cuda.sparse"
    with pytest.raises(TypeError, match=rf"type torch\.cuda\.sparse\.{name} not available\. Torch "
                                        "not compiled with CUDA enabled"):
        cls()
