"""Which ops of PyTorch's dispatcher a mode below autograd is shown, forward and backward. The
sequences are those that PyTorch shows (without the `detach` around saved results)."""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils._python_dispatch import TorchDispatchMode, aten


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((str(func).removeprefix("aten."), args, kwargs or {}))
        return func(*args, **(kwargs or {}))

    @property
    def names(self):
        return " ".join(n.removesuffix(".default") for n, _, _ in self.calls
                        if n != "detach.default")


def leaf(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(1)).requires_grad_()


def written(x, index, value):
    x = x.clone()
    x[index] = value
    return x


X, Y, W, V = leaf(3, 4), leaf(3, 4), leaf(4, 4), leaf(4)
X3, IMAGE, KERNEL, Q = leaf(2, 3, 4), leaf(2, 4, 4, 4), leaf(4, 4, 3, 3), leaf(2, 2, 3, 4)
Z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
ROWS, CLASSES = torch.tensor([0, 2]), torch.tensor([0, 1, 2])

SHOWN = [
    (lambda: 1 - X, "rsub.Scalar", "neg"),
    (lambda: X * 2.0, "mul.Tensor", "mul.Tensor"),
    (lambda: X / 2, "div.Tensor", "div.Tensor"),
    (lambda: X < 1, "lt.Scalar", None),
    (lambda: X ** 2, "pow.Tensor_Scalar", "pow.Tensor_Scalar mul.Scalar mul.Tensor"),
    (lambda: X.sigmoid(), "sigmoid", "sigmoid_backward"),
    (lambda: X.tanh(), "tanh", "tanh_backward"),
    (lambda: F.relu(X), "relu", "threshold_backward"),
    (lambda: F.gelu(X), "gelu", "gelu_backward"),
    (lambda: F.silu(X), "silu", "silu_backward"),
    (lambda: F.elu(X), "elu", "elu_backward"),
    (lambda: F.selu(X), "elu", "elu_backward"),
    (lambda: F.leaky_relu(X), "leaky_relu", "leaky_relu_backward"),
    (lambda: F.hardtanh(X), "hardtanh", "hardtanh_backward"),
    (lambda: F.softplus(X), "softplus", "softplus_backward"),
    (lambda: F.logsigmoid(X), "log_sigmoid_forward", "log_sigmoid_backward"),
    (lambda: F.glu(X), "glu", "glu_backward"),
    (lambda: F.softmax(X, 1), "_softmax", "_softmax_backward_data"),
    (lambda: X.log_softmax(1), "_log_softmax", "_log_softmax_backward_data"),
    (lambda: X.sum(), "sum", "expand"),
    (lambda: X.sum(0), "sum.dim_IntList", "unsqueeze expand"),
    (lambda: X.mean(1), "mean.dim", "unsqueeze expand div.Scalar"),
    (lambda: X.var(1), "var.correction", None),
    (lambda: X.max(1)[0], "max.dim", None),
    (lambda: X.norm(), "linalg_vector_norm", None),
    (lambda: X.cumsum(0), "cumsum", None),
    (lambda: X.sort(1)[0], "sort", None),
    (lambda: X[1:], "slice.Tensor", "slice_backward"),
    (lambda: X[0, 1], "select.int select.int", "select_backward select_backward"),
    (lambda: X[::2, 1:], "slice.Tensor slice.Tensor", "slice_backward slice_backward"),
    (lambda: X[None], "unsqueeze", "squeeze.dim"),
    (lambda: X[:, ROWS], "index.Tensor", None),
    (lambda: X.permute(1, 0), "permute", "permute"),
    (lambda: X.expand(2, 3, 4), "expand", "sum.dim_IntList view"),
    (lambda: X.t().contiguous(), "t clone", "t"),
    (lambda: X.double(), "_to_copy", "_to_copy"),
    (lambda: X.split(1)[0], "split.Tensor", None),
    (lambda: X @ W, "mm", "t mm t mm"),
    (lambda: X3.bmm(X3.detach().transpose(1, 2)), "transpose.int bmm", "transpose.int bmm"),
    (lambda: X3 @ W, "view mm _unsafe_view", "view t mm t mm view"),
    (lambda: X.repeat(2, 1), "repeat", None),
    (lambda: X.scatter_reduce(0, ROWS.view(2, 1) // 2, Y.detach(), "sum"),
     "view floor_divide scatter_reduce.two", None),
    (lambda: X.index_copy(0, ROWS, Y.detach()[:2]), "slice.Tensor index_copy",
     "index_fill.int_Scalar"),
    (lambda: X.unsafe_chunk(2, 1)[0], "unsafe_split.Tensor", None),
    (lambda: torch.nonzero_static(X, size=3), "nonzero_static", None),
    (lambda: Z.real, "view_as_real select.int", "select_backward view_as_complex"),
    (lambda: F.linear(X, W), "t mm", "t mm t t mm t"),
    (lambda: F.linear(X, W, V), "t addmm", "t mm t mm t sum.dim_IntList view t"),
    (lambda: F.linear(X3, W, V), "view t addmm view",
     "view t mm t mm t sum.dim_IntList view t view"),
    (lambda: F.layer_norm(X, (4,), V, V.detach()), "native_layer_norm",
     "native_layer_norm_backward"),
    (lambda: F.group_norm(IMAGE, 2), "native_group_norm", "native_group_norm_backward"),
    (lambda: F.conv2d(IMAGE, KERNEL, V), "convolution", "convolution_backward"),
    (lambda: F.conv_transpose2d(IMAGE, KERNEL), "convolution", "convolution_backward"),
    (lambda: F.max_pool2d(IMAGE, 2), "max_pool2d_with_indices",
     "max_pool2d_with_indices_backward"),
    (lambda: F.avg_pool2d(IMAGE, 2), "avg_pool2d", "avg_pool2d_backward"),
    (lambda: F.adaptive_avg_pool2d(IMAGE, 2), "_adaptive_avg_pool2d",
     "_adaptive_avg_pool2d_backward"),
    (lambda: F.interpolate(IMAGE, scale_factor=2), "upsample_nearest2d",
     "upsample_nearest2d_backward"),
    (lambda: F.interpolate(IMAGE, size=(8, 8), mode="bilinear"), "upsample_bilinear2d",
     "upsample_bilinear2d_backward"),
    (lambda: F.pad(X, (1, 1)), "constant_pad_nd", "constant_pad_nd"),
    (lambda: F.pad(IMAGE, (1, 1, 1, 1), mode="reflect"), "reflection_pad2d",
     "reflection_pad2d_backward"),
    (lambda: F.embedding(ROWS, W), "embedding", "embedding_dense_backward"),
    (lambda: F.dropout(X, 0.5, True), "empty_like bernoulli_.float div_.Scalar mul.Tensor",
     "mul.Tensor"),
    (lambda: F.cross_entropy(X, CLASSES), "_log_softmax nll_loss_forward",
     "nll_loss_backward _log_softmax_backward_data"),
    (lambda: F.mse_loss(X, Y.detach()), "mse_loss", "mse_loss_backward"),
    (lambda: F.huber_loss(X, Y.detach()), "huber_loss", "huber_loss_backward"),
    (lambda: F.scaled_dot_product_attention(Q, Q.detach(), Q.detach()),
     "_scaled_dot_product_flash_attention_for_cpu",
     "_scaled_dot_product_flash_attention_for_cpu_backward"),
    (lambda: X.clone().mul_(2), "clone mul_.Tensor", None),
    (lambda: X.clone().clamp_(0, 1), "clone clone clamp_", None),
    (lambda: X.clone().zero_(), "clone zero_", None),
    (lambda: torch.dist(X, Y), "dist", None),
    (lambda: torch.zeros(2), "zeros", None),
    (lambda: torch.tensor([1.0]), "lift_fresh", None),
    (lambda: torch.full((2,), 1.0), "full", None),
    (lambda: torch.empty(2).normal_(), "empty.memory_format normal_", None),
    (lambda: nn.Linear(4, 2)(X.detach()),
     "empty.memory_format empty.memory_format uniform_ uniform_ t addmm", None),
]


@pytest.mark.parametrize("call, forward, backward", SHOWN, ids=range(len(SHOWN)))
def test_names(call, forward, backward):
    with Log() as log:
        result = call()
    assert log.names == forward
    if backward is not None:
        grad = torch.ones_like(result)
        leaves = [X, Y, W, V, X3, IMAGE, KERNEL, Q, Z]
        with Log() as log:
            torch.autograd.grad(result, leaves, grad, allow_unused=True)
        assert log.names == backward


@pytest.mark.parametrize("call", [row[0] for row in SHOWN], ids=range(len(SHOWN)))
def test_a_mode_that_looks_changes_nothing(call):
    def run():
        torch.manual_seed(0)
        result = call()
        if not result.requires_grad:
            return [result]
        leaves = [X, Y, W, V, X3, IMAGE, KERNEL, Q, Z]
        found = torch.autograd.grad(result, leaves, torch.ones_like(result), allow_unused=True)
        return [result, *[f for f in found if f is not None]]
    expected = run()
    with Log():
        found = run()
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b)
        assert a.is_leaf == b.is_leaf


@pytest.mark.parametrize("call, expected", [
    (lambda: X.sum(0, keepdim=True), ([X, [0], True], {})),
    (lambda: X.mean(1), ([X, [1]], {})),
    (lambda: X.var(1), ([X, [1]], {"correction": 1})),
    (lambda: F.gelu(X, approximate="tanh"), ([X], {"approximate": "tanh"})),
    (lambda: F.layer_norm(X, (4,)), ([X, [4], None, None, 1e-5], {})),
    (lambda: F.max_pool2d(IMAGE, 2), ([IMAGE, [2, 2]], {})),
    (lambda: F.hardtanh(X), ([X, -1.0, 1.0], {})),
    (lambda: X[1:], ([X, 0, 1, 2**63 - 1], {})),
    (lambda: X.softmax(1), ([X, 1, False], {})),
    (lambda: X.double(), ([X], {"dtype": torch.float64})),
    (lambda: torch.zeros(2, 3), ([[2, 3]], {"device": torch.device("cpu"), "pin_memory": False})),
    (lambda: X.t().contiguous(), ([X], {})),
])
def test_arguments(call, expected):
    with Log() as log:
        call()
    _, args, kwargs = log.calls[0]
    assert [a is b if isinstance(b, torch.Tensor) else a == b
            for a, b in zip(args, expected[0], strict=True)] == [True] * len(args)
    assert kwargs == expected[1]


def test_a_mode_is_below_autograd():
    seen = []

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            seen.append(result.requires_grad)
            return torch.ones_like(result) * 7
    with Look():
        y = X.exp()
    assert seen == [False, False] and y.requires_grad and y.grad_fn.name() == "ExpBackward0"
    assert y[0, 0] == 7 and torch.equal(torch.autograd.grad(y.sum(), X)[0], y.detach())


def test_views_and_writes_keep_their_history():
    with Log():
        base = X.clone()
        view = base[1:]
        view.mul_(3)
        assert view._base is base and base.grad_fn.name() == "torch::autograd::CopySlices"
        grad, = torch.autograd.grad(base.sum(), X)
    expected = torch.ones(3, 4)
    expected[1:] = 3
    assert torch.equal(grad, expected)
    with Log(), pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        X.add_(1)


def test_results_made_as_views_below_are_none_above():
    with Log():
        y = X.repeat(2, 1)
        part = y.mul_(2)[0]
    assert y.requires_grad and y._base is None and part._base is y
    assert y.grad_fn.name() == "MulBackward0"
    assert torch.equal(torch.autograd.grad(y.sum(), X)[0], torch.full((3, 4), 4.0))


def test_complex_factors_are_conjugated():
    a, b, c = (torch.full((2, 2), v, requires_grad=True) for v in (1 + 2j, 2 - 1j, 3j))
    def run():
        y = torch.addmm(a, b, c, beta=2j, alpha=1 - 1j)
        return torch.autograd.grad(y.real.sum(), (a, b, c))
    expected = run()
    with Log():
        found = run()
    torch.testing.assert_close(found, expected)
    assert found[0][0, 0] == -2j


def test_second_derivatives_under_a_mode():
    x = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    with Log():
        first, = torch.autograd.grad(F.gelu(x).sum(), x, create_graph=True)
        second, = torch.autograd.grad(first.sum(), x)
    plain, = torch.autograd.grad(F.gelu(x).sum(), x, create_graph=True)
    assert torch.allclose(first, plain)
    assert torch.allclose(second, torch.autograd.grad(plain.sum(), x)[0])


def test_schemas():
    schema = aten.mean.dim._schema
    assert str(schema) == ("aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, "
                           "ScalarType? dtype=None) -> Tensor")
    assert [a.name for a in schema.arguments] == ["self", "dim", "keepdim", "dtype"]
    assert schema.arguments[3].kwarg_only and not schema.is_mutable
    assert schema.arguments[2].default_value is False
    assert aten.clamp.default._schema.name == "aten::clamp"
    assert aten.uniform_.default._schema.is_mutable
    assert aten.permute.default._schema.arguments[0].alias_info.before_set == {"a"}
    assert aten.max.dim.name() == "aten::max.dim" and aten.max.dim.overloadpacket is aten.max
    assert "dim" in aten.max.overloads()


DRAWS = [       # as PyTorch shows them: no draw is left out, so that a recorded program draws alike
    (lambda: torch.rand(2, generator=torch.Generator()), "rand.generator"),
    (lambda: torch.randint(5, (2,)), "randint"),
    (lambda: torch.randint(0, 5, (2,)), "randint.low"),
    (lambda: torch.randperm(4), "randperm"),
    (lambda: torch.randint_like(V, 5), "randint_like"),
    (lambda: torch.normal(0.0, 1.0, (2,)), "normal.float_float"),
    (lambda: torch.normal(V, 1.0), "normal.Tensor_float"),
    (lambda: torch.normal(V, V), "normal.Tensor_Tensor"),
    (lambda: torch.bernoulli(V), "bernoulli"),
    (lambda: torch.bernoulli(V, 0.5), "bernoulli.p"),
    (lambda: torch.ones(2).random_(), "ones random_"),
    (lambda: torch.ones(2).random_(3), "ones random_.to"),
    (lambda: torch.ones(2).random_(0, 3), "ones random_.from"),
    (lambda: torch.ones(2).uniform_(0, 2), "ones uniform_"),
    (lambda: torch._standard_gamma(V), "_standard_gamma"),
    (lambda: torch.hann_window(4), "hann_window"),
    (lambda: F.dropout(X), "empty_like bernoulli_.float div_.Scalar mul.Tensor"),
    (lambda: torch.feature_dropout(X, 0.5, True),
     "new_empty bernoulli_.float div_.Scalar mul.Tensor"),
    (lambda: torch.alpha_dropout(X, 0.5, True),
     "empty_like bernoulli_.float add.Scalar mul_.Scalar add_.Scalar mul_.Scalar mul.Tensor "
     "add_.Tensor"),
    (lambda: F.dropout(torch.ones(3), inplace=True),
     "ones empty_like bernoulli_.float div_.Scalar mul_.Tensor"),
]


@pytest.mark.parametrize("call, shown", DRAWS, ids=[shown for _, shown in DRAWS])
def test_draws_are_shown(call, shown):
    with Log() as log:
        torch.manual_seed(0)
        inside = call()
    assert log.names == shown
    torch.manual_seed(0)
    assert torch.equal(inside.detach(), call().detach())
