"""Products of groups of matrices are the products of each."""
import pytest

import flambeau as torch

F = torch.nn.functional


def drawn(*shape):
    torch.manual_seed(0)
    return torch.randn(*shape).bfloat16()


def test_groups_of_rows():
    x, w, ends = drawn(16, 16), drawn(3, 16, 16), torch.tensor([4, 4, 16], dtype=torch.int32)
    found = F.grouped_mm(x, w, offs=ends)
    wanted = torch.cat([x[:4] @ w[0], x[4:4] @ w[1], x[4:] @ w[2]])
    assert torch.allclose(found.float(), wanted.float(), atol=0.1)


def test_stacked_groups():
    x, w = drawn(2, 16, 16), drawn(2, 16, 16)
    assert torch.allclose(F.grouped_mm(x, w).float(), torch.bmm(x, w).float(), atol=0.1)


def test_groups_need_their_ends():
    with pytest.raises((RuntimeError, ValueError), match="off"):
        F.grouped_mm(drawn(16, 16), drawn(2, 16, 16))
