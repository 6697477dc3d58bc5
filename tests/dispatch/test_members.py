"""Members ask and tell: they bind as ops do, and no graph or level holds them."""
import pytest

import flambeau as torch
from flambeau.overrides import TorchFunctionMode


class Seen(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


def test_members_answer():
    x = torch.ones(2, 3)
    assert x.size() == (2, 3) and x.size(-1) == 3 and x.size(dim=0) == 2
    assert x.numel() == torch.numel(x) == 6 and x.is_floating_point()


def test_members_refuse_in_the_words_of_ops():
    x = torch.ones(2, 3)
    with pytest.raises(TypeError, match="size"):
        x.size("a")
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.size(2)
    with pytest.raises(TypeError, match=r"is_floating_point\(\): argument 'input' \(position 1\)"):
        torch.is_floating_point(1)


def test_function_modes_are_shown_members():
    x = torch.ones(2, 3)
    with Seen() as seen:
        assert x.size(0) == 2
    assert "size" in seen.names


def test_members_are_no_part_of_a_graph():
    x = torch.ones(2, 3, requires_grad=True)
    assert torch.func.vmap(lambda row: row * row.numel())(x).grad_fn is not None
    assert torch.func.vmap(lambda row: torch.tensor(row.size(0)))(x).tolist() == [3, 3]
