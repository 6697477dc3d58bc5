"""The graph that users see is PyTorch's: nodes, edges and the names of what is saved."""
import gc
import importlib.util
import json
import re
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

DATA = Path(__file__).parents[1] / "data"
RECORDED = json.loads((DATA / "graphs.json").read_text())
spec = importlib.util.spec_from_file_location("record_graphs", DATA / "record_graphs.py")
record = importlib.util.module_from_spec(spec)
spec.loader.exec_module(record)
NODE = re.compile(r"(\S+?)\((.*?)\)(.*)")

# Programs whose steps are others than PyTorch's; where one of them becomes the same, it leaves.
DIFFERENT = """
F.cross_entropy(v, torch.tensor(1))
nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular")(img)
nn.CircularPad1d(1)(seq)
nn.CircularPad2d(1)(img)
nn.CrossMapLRN2d(2)(img)
unpack(nn.LSTM(3, 2)(pack(b3, [2, 2, 1, 1]))[0])[0]
unpack(nn.LSTM(3, 2)(pack(b3, [1, 2, 1, 2], enforce_sorted=False))[0])[0]
special.entr(x) + special.ndtr(x) + special.log_ndtr(x) + special.erfcx(x)
torch.gradient(x)[0]
torch.cov(x)
torch.corrcoef(x)
torch.masked.softmax(x, 1, mask=mask)
torch.combinations(v)
torch.kron(x, y)
torch.nn.utils.rnn.pad_sequence([x, y[:2]])
torch.nn.utils.rnn.pack_sequence([x, y[:2]]).data
torch.vander(v)
torch.linalg.tensorsolve(leaf(4, 2, 2), leaf(4))
stft(leaf(16)).abs()
torch.istft(stft(leaf(16)), 8, window=torch.ones(8))
a, = grad((x / y).sum(), y, create_graph=True)
a, = grad(F.silu(x).sum(), x, create_graph=True)
a, = grad(F.linear(x, w).square().sum(), w, create_graph=True)
a, = grad(x.norm(), x, create_graph=True)
a, = grad(x.max() ** 2, x, create_graph=True)
a, = grad(x.max(1)[0].square().sum(), x, create_graph=True)
a, = grad(x[index].square().sum(), x, create_graph=True)
a, = grad(torch.linalg.inv(m).sum(), m, create_graph=True)
a, = grad(F.layer_norm(x, (3,)).square().sum(), x, create_graph=True)
a, = grad(F.avg_pool2d(img, 2).square().sum(), img, create_graph=True)
a, = grad(F.max_pool2d(img, 2).square().sum(), img, create_graph=True)
a = D.MultivariateNormal(v, torch.eye(3) * s).log_prob(v.detach())
""".strip().splitlines()

# What nodes of PyTorch keep though the gradient needs it not, or not in that form.
NOT_KEPT = """
AdaptiveAvgPool2DBackward0 self
AdaptiveAvgPool3DBackward0 self
AdaptiveMaxPool2DBackward0 self
AdaptiveMaxPool3DBackward0 self
AddBackward0 alpha
AffineGridGeneratorBackward0 align_corners size
AminmaxBackward0 max min
AsStridedScatterBackward0 size storage_offset stride
AvgPool2DBackward0 self
AvgPool3DBackward0 self
CholeskyInverseBackward0 result self upper
CholeskySolveBackward0 input2 self
ComplexBackward0 imag real
ConvTbcBackward0 bias pad self weight
ConvolutionBackwardBackward0 grad_output input
CtcLossBackward0 input_lengths log_probs result0 result1 target_lengths zero_infinity
CummaxBackward0 self
CumminBackward0 self
DiagonalBackward0_copy dim1 dim2 offset self_sym_sizes
DiagonalScatterBackward0 dim1 dim2 offset
DistBackward0 other p
DivBackward2 other self
EluBackward0 alpha input_scale scale
EluBackward1 result
EluBackwardBackward0 alpha grad_output input_scale is_result scale self_or_result
EmbeddingBackward0 sparse
EmbeddingBagBackward0 indices mode offsets padding_idx per_sample_weights result1 result2 result3
EmbeddingBagBackward0 scale_grad_by_freq sparse weight weight_sym_argsize_0
ErfinvBackward0 self
FftC2CBackward0 dim normalization
FftC2RBackward0 dim normalization
FftR2CBackward0 dim normalization onesided self
FractionalMaxPool2DBackward0 self
GatherBackward0 self
GeluBackwardBackward0 approximate grad_output self
GridSampler2DBackward0 align_corners interpolation_mode padding_mode
GridSampler3DBackward0 align_corners interpolation_mode padding_mode
HuberLossBackward0 delta
IndexAddBackward0 source source_dim
IndexCopyBackward0 source source_dim
IndexFillBackward1 dim index
IndexPutBackward0 indices
IndexReduceBackward0 source
LdexpBackward0 result
LeakyReluBackward1 result
LeakyReluBackwardBackward0 negative_slope self
LinalgDetBackward0 A LU pivots result
LinalgHouseholderProductBackward0 input result
LinalgLstsqBackward0 b self
LinalgLuFactorExBackward0 pivot
LinalgLuSolveBackward0 LU adjoint left pivots
LinalgSlogdetBackward0 A LU pivots
LinalgSolveExBackward0 LU left pivots
LinalgSolveTriangularBackward0 left self
LinalgSvdBackward0 S_sym_argsize_minus_1 full_matrices
LogSigmoidBackward0 buffer
LogSoftmaxBackwardDataBackward0 grad_output
LuUnpackBackward0 LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2
MaskedSelectBackward0 mask self
MaxPool2DWithIndicesBackward0 self
MaxPool3DWithIndicesBackward0 self
MkldnnRnnLayerBackward0 batch_first batch_sizes bidirectional cx_ has_biases hidden_size hx_ mode
MkldnnRnnLayerBackward0 num_layers result0 result1 result2 result3 train weight0 weight1 weight2
MkldnnRnnLayerBackward0 weight3
MseLossBackwardBackward0 grad_output reduction self target
MultiMarginLossBackward0 margin p reduction self target weight
MultilabelMarginLossBackward0 is_target reduction self target
MvlgammaBackward0 p self
NansumBackward0 self
NativeBatchNormBackward0 result1 result2 running_mean running_var training
NativeDropoutBackward0 p result1
NativeGroupNormBackward0 C HxW N group result1 result2
NativeLayerNormBackward0 normalized_shape result1 result2
NativeLayerNormBackwardBackward0 grad_out input mean normalized_shape rstd weight
NllLoss2DBackward0 total_weight
NllLossBackward0 total_weight
PackPaddedSequenceBackward0 batch_first input_sym_sizes result1
PolarBackward0 result
PutBackward0 source
ReflectionPad1DBackward0 self
ReflectionPad2DBackward0 self
RenormBackward0 dim maxnorm p
RepeatBackward0 repeats
ReplicationPad2DBackward0 self
ReplicationPad3DBackward0 self
RollBackward0 dims shifts
RreluWithNoiseBackward0 lower noise training upper
RsubBackward0 alpha
RsubBackward1 alpha
SafeSoftmaxBackward0 dim result
ScaledDotProductFlashAttentionForCpuBackward0 attn_mask dropout_p logsumexp output
SelectBackward0 dim
SelectBackwardBackward0 dim
SelectScatterBackward0 dim index
SigmoidBackwardBackward0 grad_output output
SliceBackward0 dim end start step
SliceScatterBackward0 dim end start step
SmoothL1LossBackward0 beta
SoftmaxBackwardDataBackward0 grad_output
SoftplusBackwardBackward0 beta grad_output self threshold
SqueezeBackward0_copy self_sym_sizes
SubBackward0 alpha
TakeBackward0 self
TanhBackwardBackward0 grad_output output
ThresholdBackwardBackward0 self threshold
ToSparseBackward1 self_self_sym_blocksize_opt
TriangularSolveBackward0 self solution transpose
TrilinearBackward0 expand1 expand2 expand3 i1 i2 i3 sumdim
UnsqueezeBackward0 dim
VdotBackward0 other
ViewBackward0_copy self_sym_sizes
WeightNormInterfaceBackward0 dim g result1 v
"""


def parsed(line):
    name, saved, edges = NODE.match(line).groups()
    return name, set(saved.split(", ")) - {""}, edges.split()


@pytest.mark.parametrize("program", [p for p in RECORDED if p not in DIFFERENT])
def test_same_graph(program, monkeypatch):
    monkeypatch.setattr(torch.backends.opt_einsum, "enabled", False)     # as it was recorded
    found = record.graph(record.run(program, torch))
    expected = RECORDED[program].split("; ")
    assert [parsed(line)[::2] for line in found] == [parsed(line)[::2] for line in expected]
    for ours, theirs in zip(found, expected):
        name, saved, _ = parsed(ours)
        assert saved <= parsed(theirs)[1], ours
        assert parsed(theirs)[1] - saved <= missing.get(name, set()), (ours, theirs)


missing = {}
for name, *names in map(str.split, NOT_KEPT.strip().splitlines()):
    missing.setdefault(name, set()).update(names)


@pytest.mark.parametrize("program", DIFFERENT)
def test_listed_differences_are_differences(program):
    found = record.graph(record.run(program, torch))
    assert [parsed(line)[::2] for line in found] != \
        [parsed(line)[::2] for line in RECORDED[program].split("; ")]


def test_what_is_listed_can_be_read():
    """Programs that draw graphs read all names that `dir` shows, which reads nothing itself."""
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: pytest.fail("unpacked")):
        y = F.layer_norm(torch.ones(2, 3, requires_grad=True).exp(), (3,)).sum()
        nodes = [y.grad_fn]
        for node in nodes:
            dir(node)
            nodes += [n for n, _ in node.next_functions if n is not None]
    for program in [*RECORDED][::7]:
        nodes = [record.run(program, torch).grad_fn]
        for node in nodes[:20]:
            for name in dir(node):
                if name.startswith("_saved_"):
                    getattr(node, name)
            nodes += [n for n, _ in node.next_functions if n is not None]


def both_ways(make):
    """The gradients of a program, of which the graph was looked at, and not."""
    found = []
    for looked in (False, True):
        torch.manual_seed(0)
        leaves, y = make()
        nodes = [y.grad_fn] if looked else []
        for node in nodes:
            nodes += [n for n, _ in node.next_functions if n is not None]
        y.sum().backward()
        found.append([leaf.grad for leaf in leaves])
    return found


def rand(*shape):
    return torch.rand(*shape, requires_grad=True)


def of(make, *shapes):
    def run():
        leaves = [rand(*shape) for shape in shapes]
        return leaves, make(*leaves)
    return run


@pytest.mark.parametrize("make", [
    of(lambda x: F.cross_entropy(x, torch.tensor([1, 0])), (2, 3)),
    of(lambda x, w: F.rms_norm(x, (3,), w), (2, 3), (3,)),
    of(lambda x, w, b: F.linear(x.transpose(0, 1), w, b), (2, 4, 3), (5, 3), (5,)),
    of(lambda x, w: F.linear(x.transpose(0, 1), w), (2, 4, 3), (5, 3)),
    of(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (2, 4, 3), (2, 4, 3), (2, 4, 3)),
    of(lambda x: x[1:3, 0, None] * 2, (4, 3)),
    of(lambda x, *weights: torch.gru(x, torch.zeros(1, 2, 3), weights, True, 1, 0.0, True, False,
                                     False)[0], (4, 2, 3), (9, 3), (9, 3), (9,), (9,)),
    of(lambda x, *weights: torch.rnn_relu(x, torch.zeros(1, 2, 3), weights, True, 1, 0.0, True,
                                          False, False)[1], (4, 2, 3), (3, 3), (3, 3), (3,), (3,)),
    of(lambda x, *weights: sum(part.sum() for part in torch.lstm(
        x, (torch.zeros(1, 2, 3),) * 2, weights, True, 1, 0.0, True, False, False)),
       (4, 2, 3), (12, 3), (12, 3), (12,), (12,)),
])
def test_gradients_of_a_graph_that_was_looked_at(make):
    for plain, looked in zip(*both_ways(make)):
        assert torch.allclose(plain, looked, rtol=1e-5, atol=1e-6)


def test_looking_twice_shows_the_same_nodes():
    x = rand(2, 3)
    y = F.cross_entropy(x, torch.tensor([1, 0]), label_smoothing=0.1)
    first = [y.grad_fn, *(n for n, _ in y.grad_fn.next_functions)]
    gc.collect()
    assert [y.grad_fn, *(n for n, _ in y.grad_fn.next_functions)] == first


def test_hooks_on_nodes_that_a_node_stands_for():
    x = rand(2, 3)
    y = F.cross_entropy(x, torch.tensor([1, 0]))
    y.retain_grad()
    (softmax, _), = y.grad_fn.next_functions
    assert softmax.name() == "LogSoftmaxBackward0"
    seen = []
    softmax.register_prehook(lambda grads: seen.append(grads[0].shape))
    softmax.register_hook(lambda inputs, outputs: seen.append((inputs[0].shape, outputs[0].shape)))
    y.backward()
    assert seen == [(2, 3), ((2, 3), (2, 3))] and y.grad.item() == 1
    assert torch.allclose(x.grad, (x.detach().softmax(1) - torch.eye(3)[[1, 0]]) / 2)


def test_a_composite_seen_as_one_node_runs_as_one():
    x = rand(3, 3)
    y = (x * 2).trace()
    node, seen = y.grad_fn, []
    assert [n.name() for n, _ in node.next_functions] == ["MulBackward0"]
    node.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    y.backward(retain_graph=True)
    ((grad,), _), = seen
    assert torch.equal(grad, torch.eye(3)) and torch.equal(x.grad, 2 * torch.eye(3))
    y.backward()
    assert torch.equal(x.grad, 4 * torch.eye(3))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_one_node_whose_inputs_depend_on_each_other():
    x = rand(3)
    y = torch.dist(x, x * 2)
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    g, = torch.autograd.grad(y, x, create_graph=True)
    assert torch.allclose(g, x / x.norm())
    second, = torch.autograd.grad(g.sum(), x)
    expected = torch.autograd.functional.hessian(lambda x: x.norm(), x.detach()).sum(0)
    assert torch.allclose(second, expected, atol=1e-6)


def test_calling_a_node():
    x = rand(2, 2)
    assert torch.equal(x.trace().grad_fn(torch.tensor(1.0)), torch.eye(2))
    assert torch.equal(x.exp().grad_fn(torch.ones(2, 2)), x.exp())


def test_parts_of_a_network_are_results_of_one_node():
    output, (h, c) = nn.LSTM(3, 2)(rand(4, 2, 3))
    node = output.grad_fn
    assert (output.output_nr, node.name()) == (0, "MkldnnRnnLayerBackward0")
    assert h.grad_fn.next_functions == ((node, 1),) and c.grad_fn.next_functions == ((node, 2),)


def test_hooks_of_several_tensors_know_each_pass():
    """Also one that has the place in memory of another that has ended."""
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    calls = []
    torch.autograd.graph.register_multi_grad_hook(
        (x, y), lambda grad: calls.append("any"), mode="any")
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda grads: calls.append("all"))
    for n in range(1, 6):
        (x * y).sum().backward()
        assert calls.count("any") == calls.count("all") == n


def test_saved_tensors_are_copied_before_outputs_overwrite_them():
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a, b = torch.tensor([3.0], requires_grad=True), torch.tensor([2.0])
        y = a * b
        assert len(context.tid_to_weakhandle) == 1
        torch.sin(torch.tensor([5.0]), out=b)
        y.backward()
        assert a.grad.tolist() == [2.0]
