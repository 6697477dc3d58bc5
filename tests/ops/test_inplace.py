"""In-place forms: the same numbers, one write counted, the history replaced."""
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau.core.op import table


def test_the_tensor_has_the_history_of_the_result():
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    y = x * 1
    y.square_().mul_(3)
    assert y.grad_fn.name() == "MulBackward0" and y._version == 2
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]


def test_a_write_to_a_view_reaches_the_base_and_other_views():
    x = torch.ones(3, requires_grad=True)
    base = x * 1
    first, rest = base[0], base[1:]
    rest.mul_(5)
    (base.sum() + first).backward()
    assert x.grad.tolist() == [2.0, 5.0, 5.0] and first._version == 1


@pytest.mark.parametrize("write,said", [
    (lambda x: x.add_(1), "a leaf Variable that requires grad is being used in an in-place"),
    (lambda x: x[0].add_(1), "a view of a leaf Variable that requires grad is being used"),
    (lambda x: (x * 1).unbind()[0].add_(1), "one of the outputs|is a view and"),
    (lambda x: torch.ones(1).expand(3).add_(x.detach()), "unsupported operation"),
    (lambda x: torch.ones(2).add_(x.detach()), "doesn't match the broadcast shape|size"),
    (lambda x: torch.ones(3, dtype=torch.int32).mul_(x.detach()), "can't be cast")])
def test_writes_that_are_refused(write, said):
    with pytest.raises(RuntimeError, match=said):
        write(torch.ones(3, requires_grad=True))


def test_nothing_is_written_where_something_is_refused():
    x = torch.arange(3)
    with pytest.raises(RuntimeError, match="can't be cast"):
        x.add_(torch.ones(3))
    assert x.tolist() == [0, 1, 2] and x._version == 0


def test_a_constant_written_to_a_tensor_ends_its_history():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.zero_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


# ---- the rule for all of them --------------------------------------------------------------------

def _forms():
    """The in-place methods of two tensors, and of the added products; names that are aliases are
    the same functions."""
    own = [op.declaration for op in table.values()
           if getattr(op.declaration, "inplace", False) and len(op.tensors) == 2
           and op.kind == "pointwise" and not op.params and op.declaration.method]
    return sorted({d.name for d in own})


DTYPES = [torch.float32, torch.float64, torch.int64, torch.int16, torch.bool, torch.complex128,
          torch.bfloat16]
SHAPES = [(2, 3), (3,), (), (2, 1)]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(_forms()), st.sampled_from(DTYPES), st.sampled_from(DTYPES),
       st.sampled_from(SHAPES), st.sampled_from(SHAPES))
def test_the_form_returns_its_tensor_with_the_result_in_it_or_leaves_it_alone(
        name, dtype, other, shape, second):
    x = torch.arange(1, 7).to(dtype).flatten()[:torch.Size(shape).numel()].reshape(shape)
    y = torch.arange(2, 8).to(other).flatten()[:torch.Size(second).numel()].reshape(second)
    before = x.clone()
    try:
        found = getattr(x, f"{name}_")(y)
    except (RuntimeError, NotImplementedError):
        assert x.equal(before) and x._version == 0
        return
    assert found is x and x.dtype is dtype and x._version == 1 and tuple(x.shape) == shape
    expected = getattr(before, name)(y).to(dtype)
    assert torch.equal(torch.nan_to_num(x), torch.nan_to_num(expected))


@pytest.mark.parametrize("name,shape,factors", [
    ("addmm", (2, 3), [(2, 2), (2, 3)]), ("addmv", (2,), [(2, 3), (3,)]),
    ("addr", (2, 3), [(2,), (3,)]), ("baddbmm", (2, 2, 3), [(2, 2, 2), (2, 2, 3)]),
    ("addbmm", (2, 3), [(2, 2, 2), (2, 2, 3)])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_added_products_write_to_their_tensor_whatever_the_types(name, shape, factors, dtype):
    x = torch.ones(shape)
    factors = [torch.ones(s, dtype=dtype) for s in factors]
    try:
        found = getattr(x, f"{name}_")(*factors)
    except RuntimeError:
        assert x.equal(torch.ones(shape))
        return
    assert found is x and x.equal(getattr(torch, name)(torch.ones(shape), *factors).float())


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_comparisons_have_nodes_through_which_nothing_flows(name):
    a, b = (torch.ones(s, requires_grad=True) for s in ((2, 3), (3,)))
    for other, number in ((b, 1), (2.0, 0)):
        x = a.clone()
        getattr(x, f"{name}_")(other)
        assert x.grad_fn.name() == f"{name.title()}Backward{number}"
        x.sum().backward()
        assert a.grad.equal(torch.zeros(2, 3))
    assert b.grad.equal(torch.zeros(3))
    x = torch.ones(2, 3)                    # only the other one requires grad
    getattr(x, f"{name}_")(b)
    assert x.requires_grad
    view = (a * 1)[0]
    getattr(view, f"{name}_")(b)
    assert view.requires_grad and view._base.grad_fn.name() == "torch::autograd::CopySlices"


def test_refusals_of_autograd_come_before_those_of_values():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.addr_(torch.ones(2, 2), torch.ones(4))


@pytest.mark.parametrize("call,said", [
    (lambda x: x.addmm_(torch.ones(2, 2), torch.ones(2, 4)),
     r"Bad in-place call: input tensor size \[4\] and output tensor size \[2, 4\] should match"),
    (lambda x: x.addmv_(torch.ones(2, 2), torch.ones(2)), r"size mismatch, got input \(4\)"),
    (lambda x: x.baddbmm_(torch.ones(2, 2, 2), torch.ones(2, 2, 4)), "Bad in-place call"),
    (lambda x: x.addr_(torch.ones(2), torch.ones(4)), "2D tensor expected, got 1D"),
    (lambda x: x.reshape(1, 4).addr_(torch.ones(2), torch.ones(4)),
     r"size mismatch, input: \[1, 4\], v1: \[2\], v2: \[4\]"),
    (lambda x: x.masked_scatter_(torch.ones(2, 4) > 0, torch.ones(8)),
     r"expand\(CPUBoolType\{\[2, 4\]\}, size=\[4\]\)"),
    (lambda x: x.int().ldexp_(x), "ldexp can't be cast to the desired output type Int"),
    (lambda x: x.int().mvlgamma_(1),
     "mvlgamma: result type Int can't be cast to the desired output type Float")])
def test_what_does_not_fit_is_said_of_the_in_place_form(call, said):
    with pytest.raises(RuntimeError, match=said):
        call(torch.ones(4))


def test_a_sum_of_products_gives_its_tensor_their_shape():
    a = torch.ones(1, requires_grad=True)
    x = a * 1
    x.addbmm_(torch.ones(2, 2, 2), torch.ones(2, 2, 3), beta=2)
    assert x.shape == (2, 3) and x[0, 0] == 6
    x.sum().backward()
    assert a.grad.tolist() == [12.0]


def test_a_vector_turned_in_place_counts_as_written():
    a = torch.ones(3, requires_grad=True)
    x = a * 1
    x.t_()
    assert x._version == 1 and x.grad_fn.name() == "TBackward1"


_PLACES, _COLUMNS = torch.tensor([3, 0, 3]), torch.tensor([[1, 0], [2, 2], [0, 1]])
_WRITES = {
    "add_": (lambda b: (b, ), {"alpha": 0.5}), "sub_": (lambda b: (b, ), {"alpha": 3}),
    "clamp_": (lambda b: (-0.5, 0.5), {}), "clamp_min_": (lambda b: (0.25, ), {}),
    "lerp_": (lambda b: (b, 0.3), {}), "addcmul_": (lambda b: (b, b), {"value": 2}),
    "zero_": (lambda b: (), {}), "fill_": (lambda b: (7, ), {}),
    "tril_": (lambda b: (), {}), "triu_": (lambda b: (1, ), {}),
    "scatter_": (lambda b: (1, _COLUMNS, 5.0), {}),
    "scatter_add_": (lambda b: (1, _COLUMNS, b[:3, :2].contiguous()), {}),
    "index_add_": (lambda b: (0, _PLACES, b[:3]), {"alpha": 2}),
    "index_copy_": (lambda b: (0, _PLACES[:2], b[:2]), {}),
    "index_fill_": (lambda b: (1, _PLACES, -1.0), {}),
    "index_put_": (lambda b: ((_PLACES, _PLACES), b[0, :3]), {"accumulate": True}),
    "put_": (lambda b: (_PLACES, b[0, :3]), {}),
}


@pytest.mark.parametrize("name", _WRITES)
@pytest.mark.parametrize("strided", [False, True])
def test_what_is_written_is_the_result_of_a_call(name, strided):
    arguments, options = _WRITES[name]
    torch.manual_seed(0)
    start, other = torch.randn(4, 4), torch.randn(4, 4)
    x = torch.zeros(4, 8)[:, ::2].copy_(start) if strided else start.clone()
    view, place = x[1:], x.data_ptr()
    plain = getattr(torch.Tensor, name[:-1], None)
    if plain is None:
        expected = torch.full((4, 4), 0.0 if name == "zero_" else 7.0)
    else:
        expected = plain(start.clone(), *arguments(other), **options)
    assert getattr(x, name)(*arguments(other), **options) is x
    assert x.tolist() == expected.tolist() and view.tolist() == expected[1:].tolist()
    assert x._version >= 1 and x.data_ptr() == place


def test_operands_that_share_the_memory_that_is_written():
    x = torch.arange(4.0)
    x.add_(x, alpha=2)
    assert x.tolist() == [0.0, 3.0, 6.0, 9.0]
    x.lerp_(x.flip(0), 0.5)
    assert x.tolist() == [4.5, 4.5, 4.5, 4.5]
    y = torch.arange(6.0).view(2, 3)
    y.addcmul_(y[:1].clone(), y)
    assert y.tolist() == [[0.0, 2.0, 6.0], [3.0, 8.0, 15.0]]


@given(st.sampled_from(["cumsum", "cumprod"]), st.sampled_from(["int32", "float32", "bfloat16"]),
       st.sampled_from([None, "int32", "int64", "float32", "float64"]))
def test_a_type_that_is_asked_for_is_that_of_what_is_written_to(name, own, asked):
    x = torch.ones(3, dtype=getattr(torch, own))
    dtype = None if asked is None else getattr(torch, asked)
    if asked in (None, own):
        assert getattr(x, name + "_")(0, dtype=dtype) is x and x.dtype is getattr(torch, own)
    else:
        with pytest.raises(RuntimeError, match="Bad in-place call: input tensor dtype"):
            getattr(x, name + "_")(0, dtype=dtype)
        assert x.tolist() == [1, 1, 1]


def test_what_autograd_refuses_is_said_before_what_the_op_does():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        torch.ones(2, dtype=torch.complex64, requires_grad=True).abs_()
