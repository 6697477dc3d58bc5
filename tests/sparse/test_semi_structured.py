"""Two of four values: a layout of GPUs."""
import pytest

import flambeau as torch
from flambeau.sparse import semi_structured

KINDS = ("CUTLASS", "CUSPARSELT")


def test_there_is_no_gpu():
    with pytest.raises(RuntimeError, match=r"device= ?cpu is not supported! Only CUDA tensors"):
        torch.sparse.to_sparse_semi_structured(torch.ones(4, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_classes(kind):
    own = getattr(semi_structured, f"SparseSemiStructuredTensor{kind}")
    assert issubclass(own, torch.sparse.SparseSemiStructuredTensor)
    assert kind.lower() == own.BACKEND
    with pytest.raises(RuntimeError, match="Only CUDA tensors are currently supported"):
        own.from_dense(torch.ones(64, 64, dtype=torch.float16))


def test_the_base_has_no_way_to_make_one():
    with pytest.raises(NotImplementedError):
        torch.sparse.SparseSemiStructuredTensor.from_dense(torch.ones(4, 4))
