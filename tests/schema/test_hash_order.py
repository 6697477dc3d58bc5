"""The order of keywords in messages is that of PyTorch's table of them."""
import pytest

import flambeau as torch
from flambeau.schema.hash_order import in_hash_order


def test_names_come_as_pytorch_listed_them():
    given = "a dtype requires_grad device foo xyz".split()
    assert in_hash_order(given) == "xyz device requires_grad dtype foo a".split()


def test_names_of_one_bucket_stay_together():
    assert in_hash_order(["device", "dtype", "requires_grad"]) == [
        "dtype", "requires_grad", "device"]
    assert in_hash_order([]) == []


def test_a_wrong_call_lists_its_keywords_so():
    with pytest.raises(TypeError) as caught:
        torch.eye(torch.tensor(1.5), device="cpu", dtype=torch.float32, requires_grad=False)
    assert str(caught.value).split("\n")[0].endswith(
        "got (Tensor, dtype=torch.dtype, requires_grad=bool, device=str), but expected one of:")
