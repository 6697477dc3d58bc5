"""Members ask and tell: they bind as ops do, and no graph or level holds them."""
import pytest

import flambeau as torch
from flambeau.overrides import TorchFunctionMode
from flambeau.utils._python_dispatch import TorchDispatchMode


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


class Names(TorchDispatchMode):
    """Notes what it is shown."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("change, expected", [          # as PyTorch 2.13 shows them
    (lambda x: x.resize_(6), "aten.resize_.default"),
    (lambda x: x.resize_as_(x.detach()), "aten.detach.default aten.resize_as_.default"),
    (lambda x: x.set_(), "aten.set_.default"),
    (lambda x: x.set_(x.untyped_storage()), "aten.set_.source_Storage"),
    (lambda x: x.transpose_(0, 1), "aten.transpose_.default"),
    (lambda x: x.swapaxes_(0, 1), "aten.transpose_.default"),
    (lambda x: x.swapdims_(0, 1), "aten.transpose_.default"),
    (lambda x: x.t_(), "aten.t_.default"),
    (lambda x: x.squeeze_(), "aten.squeeze_.default"),
    (lambda x: x.squeeze_(0), "aten.squeeze_.dim"),
    (lambda x: x.squeeze_((0, 1)), "aten.squeeze_.dims"),
    (lambda x: x.unsqueeze_(0), "aten.unsqueeze_.default"),
    (lambda x: x.as_strided_((2,), (1,)), "aten.as_strided_.default"),
    (lambda x: x.requires_grad_().is_leaf, ""),
])
def test_modes_are_shown_members_that_change_their_tensor(change, expected):
    plainly, watched = torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3)
    change(plainly)
    with Names() as names:
        change(watched)
    assert names.seen == expected.split()
    assert watched.shape == plainly.shape and watched.stride() == plainly.stride()
    assert watched.tolist() == plainly.tolist()


def test_members_that_modes_are_shown_have_derivatives():
    w = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with Names():
        x = w * 2
        x.t_()
        y = x * torch.ones(3, 2)
        x.unsqueeze_(0)
        (x.sum() + y.sum()).backward()
    assert x.grad_fn.name() == "UnsqueezeBackward1"
    assert w.grad.tolist() == [[4.0] * 3] * 2


def test_of_our_own_subclasses_c_says_what_python_says():
    x = torch.tensor([[1 + 2j, 3], [0.5j, 2]])
    of_kinds = [x.conj(), x.to_sparse(), x.real.to_sparse_csr(), torch.empty(2, 3, device="meta"),
                torch.quantize_per_tensor(x.real, 0.1, 0, torch.quint8), x.imag.conj().neg()]
    for t in of_kinds:
        for name in ("is_complex", "is_floating_point", "numel", "dim", "size",
                     "element_size", "is_inference"):
            function = getattr(torch.Tensor, name)
            assert function(t) == getattr(function, "twin", function)(t), (type(t), name)
