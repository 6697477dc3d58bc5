"""The opaque layout: what it holds, the ops it has, and what it refuses, as PyTorch does."""
import copy
import pickle

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.autograd import gradcheck
from flambeau.nn import functional as F
from flambeau.utils import mkldnn

X = torch.tensor([[-1.0, 0.5, 2.0], [3.0, -0.25, 1.0]])
IMAGE = torch.linspace(-1, 1, 64).reshape(2, 2, 4, 4)
VOLUME = torch.linspace(-1, 1, 128).reshape(1, 2, 4, 4, 4)


def test_there_and_back():
    x = X.to_mkldnn()
    assert x.is_mkldnn and x.layout is torch._mkldnn and not X.is_mkldnn
    assert torch.backends.mkldnn.is_available() and type(x).__name__ == "Tensor"
    assert x.to_dense().equal(X) and x.to_dense().layout is torch.strided
    assert X.t().to_mkldnn().to_dense().equal(X.t())
    assert X.to_mkldnn(torch.bfloat16).dtype is torch.bfloat16
    assert x.to_dense(torch.float16).dtype is torch.float16
    x.to_dense().zero_()
    assert x.to_dense().equal(X)                # both conversions copy
    assert repr(X.to_mkldnn().requires_grad_()) == (
        "tensor([[-1.0000,  0.5000,  2.0000],\n        [ 3.0000, -0.2500,  1.0000]], "
        "layout=torch._mkldnn, requires_grad=True)")
    assert repr(torch.ones(1, dtype=torch.int8).to_mkldnn()) == (
        "tensor([1], dtype=torch.int8, layout=torch._mkldnn)")
    zeros = torch.zeros(2, layout=torch._mkldnn)
    assert zeros.is_mkldnn and zeros.to_dense().equal(torch.zeros(2))
    assert x.new_zeros(2).is_mkldnn


OPS = [
    ("ReluBackward0", X, torch.relu), ("SigmoidBackward0", X, torch.sigmoid),
    ("TanhBackward0", X, torch.tanh), ("GeluBackward0", X, F.gelu),
    ("SoftmaxBackward0", X, lambda x: x.softmax(1)), ("CloneBackward0", X, torch.clone),
    ("AddBackward0", X, lambda x: x + x), ("AddBackward0", X, lambda x: x.add(x, alpha=2)),
    ("MulBackward0", X, lambda x: x * x), ("MulBackward0", X, lambda x: 3 * x),
    ("MkldnnReshapeBackward0", X, lambda x: x.reshape(3, 2)),
    ("MkldnnReshapeBackward0", X, torch.flatten),
    ("TBackward0", X, torch.t), ("TransposeBackward0", X, lambda x: x.transpose(0, 1)),
    ("PreluKernelBackward0", X, lambda x: F.prelu(x, torch.tensor([0.3]))),
    ("MkldnnLinearBackward0", X, lambda x: F.linear(x, X, torch.ones(2))),
    ("ConvolutionBackward0", IMAGE, lambda x: F.conv2d(x, IMAGE[:, :, :2, :2], padding=1)),
    ("MkldnnMaxPool2DBackward0", IMAGE, lambda x: F.max_pool2d(x, 2)),
    ("MkldnnMaxPool3DBackward0", VOLUME, lambda x: F.max_pool3d(x, 2)),
    ("AvgPool2DBackward0", IMAGE, lambda x: F.avg_pool2d(x, 2)),
    ("AvgPool3DBackward0", VOLUME, lambda x: F.avg_pool3d(x, 2)),
    ("MkldnnAdaptiveAvgPool2DBackward0", IMAGE, lambda x: F.adaptive_avg_pool2d(x, 2)),
    ("NativeBatchNormBackward0", IMAGE, lambda x: F.batch_norm(
        x, torch.zeros(2), torch.ones(2), torch.ones(2), torch.zeros(2), True))]


@pytest.mark.parametrize("node, x, op", OPS, ids=[str(i) for i in range(len(OPS))])
def test_each_op_is_that_of_the_elements(node, x, op):
    dense = x.clone().requires_grad_()
    opaque = x.to_mkldnn().requires_grad_()
    expected, found = op(dense), op(opaque)
    assert found.is_mkldnn and type(found.grad_fn).__name__ == node
    assert found.to_dense().equal(expected)
    weights = torch.linspace(0.5, 2, expected.numel()).reshape(expected.shape)
    expected.backward(weights)
    found.to_dense().backward(weights)
    assert opaque.grad.is_mkldnn and opaque.grad.to_dense().equal(dense.grad)


def test_gradients_pass_both_conversions():
    leaf = X.clone().requires_grad_()
    opaque = leaf.to_mkldnn()
    assert type(opaque.grad_fn).__name__ == "ToMkldnnBackward0"
    assert opaque.grad_fn._saved_self is leaf
    layouts = []
    opaque.register_hook(lambda g: layouts.append(g.layout))
    opaque.retain_grad()
    (opaque.to_dense() * 2).sum().backward()
    assert layouts == [torch._mkldnn] and opaque.grad.is_mkldnn
    assert leaf.grad.equal(torch.full((2, 3), 2.0))
    with pytest.raises(RuntimeError, match="expected layout Mkldnn but got Strided"):
        leaf.to_mkldnn().backward(torch.ones(2, 3))
    half = leaf.to_mkldnn(torch.bfloat16).to_dense(torch.float32)
    assert torch.autograd.grad(half.sum(), leaf)[0].dtype is torch.float32


def test_gradients_accumulate_on_an_opaque_leaf():
    leaf = X.to_mkldnn().requires_grad_()
    for _ in range(2):
        leaf.to_dense().sum().backward()
    assert leaf.grad.is_mkldnn and leaf.grad.to_dense().equal(torch.full((2, 3), 2.0))
    leaf.grad = None
    torch.set_warn_always(True)             # whether an earlier test has seen it or not
    try:
        with pytest.warns(UserWarning, match="create_graph=True"):
            (leaf * leaf).to_dense().sum().backward(create_graph=True)
    finally:
        torch.set_warn_always(False)
    assert leaf.grad.is_mkldnn and leaf.grad.requires_grad
    second, = torch.autograd.grad(leaf.grad.to_dense().sum(), leaf)
    assert second.to_dense().equal(torch.full((2, 3), 2.0))


def test_writing_in_place():
    x = X.to_mkldnn()
    for write, expected in ((lambda y: y.add_(x), X + X), (lambda y: y.mul_(2), 2 * X),
                            (torch.relu_, X.relu()), (torch.Tensor.sigmoid_, X.sigmoid()),
                            (torch.Tensor.zero_, 0 * X), (lambda y: y.copy_(x * 3), 3 * X)):
        y = x.clone()
        assert write(y) is y and y.to_dense().equal(expected) and y._version == 1
    assert torch.add(x, x, out=(out := x.clone())) is out and out.to_dense().equal(2 * X)
    leaf = X.to_mkldnn().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.mul_(2)
    y = leaf.clone()
    y.mul_(leaf)
    y.to_dense().sum().backward()
    assert leaf.grad.to_dense().equal(2 * X)


@pytest.mark.parametrize("error, message, call", [
    (RuntimeError, "itensor_from_mkldnn expects MKL-DNN tensor input", lambda x: x + 1),
    (RuntimeError, "itensor_from_mkldnn expects", lambda x: x + X),
    (RuntimeError, "itensor_from_mkldnn expects", lambda x: torch.tensor(2.0) * x),
    (RuntimeError, "itensor_from_mkldnn expects",
     lambda x: torch.add(x, x, out=torch.empty(2, 3))),
    (RuntimeError, "mkldnn_mul_out: currently mkldnn not support broadcasting",
     lambda x: x * torch.ones(3).to_mkldnn()),
    (RuntimeError, "could not create a primitive descriptor",
     lambda x: x + torch.ones(3).to_mkldnn()),
    (RuntimeError, "unsupported tensor layout: Mkldnn", lambda x: x - x),
    (RuntimeError, "unsupported tensor layout: Mkldnn", lambda x: x.exp_()),
    (RuntimeError, "unsupported tensor layout: Mkldnn", lambda x: x == x),
    (NotImplementedError, "Could not run 'aten::sum' with arguments from the 'MkldnnCPU'",
     lambda x: x.sum()),
    (NotImplementedError, "Could not run 'aten::as_strided'", lambda x: x[0]),
    (NotImplementedError, "Could not run 'aten::as_strided'", lambda x: x.unsqueeze(0)),
    (NotImplementedError, "Could not run 'aten::as_strided'", list),
    (NotImplementedError, "Could not run 'aten::to_mkldnn'", lambda x: x.to_mkldnn()),
    (NotImplementedError, "Could not run 'aten::empty_strided'", lambda x: x.to(torch.float64)),
    (NotImplementedError, "Unsupported device type for mkldnn layout: meta",
     lambda x: x.to("meta")),
    (NotImplementedError, "Could not run 'aten::_local_scalar_dense'",
     lambda x: torch.ones(1).to_mkldnn().item()),
    (RuntimeError, "mkldnn_transpose_: in-place", lambda x: x.t_()),
    (RuntimeError, "does not support view. Change to use reshape", lambda x: x.view(6)),
    (RuntimeError, "copy_mkldnn_: between mkldnn layout and dense Tensors is not implemented! "
     "Found self type = torch.FloatTensor and src type = Mkldnntorch.FloatTensor",
     lambda x: torch.ones(2, 3).copy_(x)),
    (RuntimeError, "only support affine model",
     lambda x: F.batch_norm(IMAGE.to_mkldnn(), torch.zeros(2), torch.ones(2))),
    (RuntimeError, "Cannot access data pointer", lambda x: x.data_ptr()),
    (NotImplementedError, "Cannot access storage of OpaqueTensorImpl",
     lambda x: x.untyped_storage()),
    (NotImplementedError, "Cannot access storage of OpaqueTensorImpl", copy.deepcopy),
    (NotImplementedError, "Cannot access storage of OpaqueTensorImpl", pickle.dumps),
    (NotImplementedError, "Cannot access storage of OpaqueTensorImpl",
     lambda x: torch.save(x, "/dev/null")),
    (TypeError, "can't convert Mkldnn layout tensor to numpy", lambda x: x.numpy()),
    (BufferError, "layout other than torch.strided", lambda x: x.__dlpack__()),
    (RuntimeError, "Unimplemented backend MkldnnCPU", lambda x: x.type()),
    (ValueError, "Unsupported tensor layout torch._mkldnn",
     lambda x: torch.testing.assert_close(x, x)),
    (RuntimeError, "dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input",
     lambda x: X.double().to_mkldnn()),
    (RuntimeError, "cpu tensor only can be converted to be a float",
     lambda x: X.to_mkldnn(torch.float64)),
    (RuntimeError, "could not create a primitive descriptor",
     lambda x: torch.tensor(1.0).to_mkldnn()),
    (RuntimeError, "get_mkldnn_dtype: unsupported data type",
     lambda x: torch.zeros(2, dtype=torch.int64, layout=torch._mkldnn)),
    (RuntimeError, "cannot be batched", torch.vmap(lambda x: x.to_mkldnn()).__call__),
])
def test_refused_as_pytorch_refuses(error, message, call):
    x = X if "batched" in message else X.to_mkldnn()
    with pytest.raises(error) as caught:
        call(x)
    assert message in str(caught.value)


def test_gradcheck_of_opaque_inputs():
    a = torch.rand(3, requires_grad=True)
    b = torch.rand(3).to_mkldnn().requires_grad_()
    for fast in (True, False):
        with pytest.warns(UserWarning, match="not a double precision"):
            assert gradcheck(lambda x, y: x * y.to_dense(), (a, b), atol=1e-1, fast_mode=fast,
                             check_batched_grad=False)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="MKLDNN inputs are not"):
        gradcheck(lambda x: x.to_dense(), (b,), check_forward_ad=True)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="MKLDNN output is not"):
        gradcheck(lambda x: x.to_mkldnn(), (a,))


def test_modules():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3), nn.PReLU(), nn.Flatten(),
                        nn.Linear(27, 2)).eval()
    expected = net(IMAGE)
    opaque = mkldnn.to_mkldnn(net)          # which puts other modules into containers
    assert repr(opaque) == ("Sequential(\n  (0): MkldnnConv2d()\n  (1): MkldnnBatchNorm()\n"
                            "  (2): MkldnnPrelu()\n  (3): Flatten(start_dim=1, end_dim=-1)\n"
                            "  (4): MkldnnLinear()\n)")
    assert torch.allclose(opaque(IMAGE), expected, atol=1e-6)
    found = opaque(IMAGE.to_mkldnn())
    assert found.is_mkldnn and torch.allclose(found.to_dense(), expected, atol=1e-6)
    assert list(opaque[0].state_dict()) == ["bias", "weight"] and net[0] is opaque[0]
    with pytest.raises(AssertionError, match="Only support eval mode batchnorm"):
        mkldnn.to_mkldnn(nn.BatchNorm2d(2))
    with pytest.raises(AssertionError, match="MKLDNN only support float"):
        mkldnn.to_mkldnn(net, torch.int8)
