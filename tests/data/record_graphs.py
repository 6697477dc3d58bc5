"""Record the graphs that PyTorch shows of programs, in graphs.json: run where PyTorch is.

A graph is its nodes breadth first from the results: each one's name, what it saves, and where
each of its edges goes (the place of the node in this list, and the number of its output).
"""
import json
import warnings
from importlib import import_module
from pathlib import Path

FILE = Path(__file__).with_name("graphs.json")

SETUP = """
torch.manual_seed(0)
def leaf(*size, dtype=torch.float32):
    return torch.rand(*size, dtype=dtype).add(0.5).requires_grad_()
def heads():
    return leaf(1, 2, 4, 3)
def words():
    return leaf(3, 2, 4)
def stft(x):
    return torch.stft(x, 8, window=torch.ones(8), return_complex=True)
x, y, z = leaf(4, 3), leaf(4, 3), leaf(4, 3)
v, w, s = leaf(3), leaf(5, 3), leaf(())
m = leaf(3, 3)
c = leaf(3, 3, dtype=torch.complex64)
b3 = leaf(2, 4, 3)
img = leaf(2, 3, 8, 8)
seq = leaf(2, 3, 8)
vol = leaf(1, 3, 4, 4, 4)
labels = torch.tensor([0, 2, 1, 0])
signs = torch.tensor([1.0, -1.0, 1.0, -1.0])
index = torch.tensor([0, 2])
mask = torch.tensor([[True, False, True]] * 4)
"""

LOSSES = """
F.cross_entropy(x, labels)
F.cross_entropy(x, labels, weight=v.detach())
F.cross_entropy(x, labels, label_smoothing=0.1)
F.cross_entropy(x, labels, weight=v.detach(), label_smoothing=0.1)
F.cross_entropy(x, labels, label_smoothing=0.1, reduction="none")
F.cross_entropy(x, labels, label_smoothing=0.1, reduction="sum")
F.cross_entropy(x, y.detach().softmax(1))
F.cross_entropy(x, y.softmax(1))
F.cross_entropy(x, y.softmax(1), weight=v.detach(), label_smoothing=0.1)
F.cross_entropy(x, y.softmax(1), reduction="none")
F.cross_entropy(img, torch.zeros(2, 8, 8, dtype=torch.long))
F.cross_entropy(img, torch.zeros(2, 8, 8, dtype=torch.long), label_smoothing=0.1)
F.cross_entropy(v, torch.tensor(1))
F.nll_loss(x.log_softmax(1), labels)
F.nll_loss(img.log_softmax(1), torch.zeros(2, 8, 8, dtype=torch.long))
F.mse_loss(x, y)
F.mse_loss(x, y.detach())
F.mse_loss(x, y, weight=z.detach())
F.l1_loss(x, y)
F.l1_loss(x, y.detach())
F.l1_loss(x, y, reduction="none")
F.smooth_l1_loss(x, y)
F.smooth_l1_loss(x, y, beta=0.0)
F.huber_loss(x, y)
F.kl_div(x, y)
F.kl_div(x, y.detach(), reduction="batchmean")
F.kl_div(x, y, log_target=True)
F.binary_cross_entropy(x.sigmoid(), y.detach().sigmoid())
F.binary_cross_entropy(x.sigmoid(), y.sigmoid())
F.binary_cross_entropy_with_logits(x, y.detach())
F.binary_cross_entropy_with_logits(x, y.sigmoid())
F.binary_cross_entropy_with_logits(x, y.detach(), pos_weight=v.detach())
F.binary_cross_entropy_with_logits(x, y.detach(), weight=v.detach(), reduction="sum")
F.hinge_embedding_loss(x, torch.ones(4, 3))
F.margin_ranking_loss(x, y, torch.ones(4, 3))
F.margin_ranking_loss(x, y, torch.ones(4, 3), margin=0.5, reduction="sum")
F.multi_margin_loss(x, labels)
F.multilabel_margin_loss(x, torch.tensor([[0, 2, -1]] * 4))
F.multilabel_soft_margin_loss(x, mask.float())
F.multilabel_soft_margin_loss(x, mask.float(), weight=v.detach())
F.soft_margin_loss(x, mask.float() * 2 - 1)
F.cosine_embedding_loss(x, y, signs)
F.cosine_embedding_loss(x, y, signs, margin=0.2, reduction="none")
F.triplet_margin_loss(x, y, z)
F.triplet_margin_loss(x, y, z, swap=True)
F.triplet_margin_with_distance_loss(x, y, z)
F.triplet_margin_with_distance_loss(x, y, z, swap=True, reduction="sum")
F.gaussian_nll_loss(x, y, z)
F.gaussian_nll_loss(x, y.detach(), z, full=True)
F.poisson_nll_loss(x, y)
F.poisson_nll_loss(x, y.detach(), log_input=False, full=True)
F.ctc_loss(leaf(6, 2, 3).log_softmax(2), torch.tensor([[1, 2], [2, 1]]), (6, 6), (2, 2))
nn.AdaptiveLogSoftmaxWithLoss(3, 8, [2, 4])(x, labels).loss
"""

LAYERS = """
nn.Linear(3, 2)(x)
nn.Linear(3, 2, bias=False)(x)
nn.Linear(3, 2)(v)
nn.Linear(3, 2)(b3)
nn.Linear(3, 2, bias=False)(b3)
nn.Linear(3, 2)(img.transpose(1, 3))
nn.Bilinear(3, 3, 2)(x, y)
nn.Bilinear(3, 3, 2, bias=False)(x, y)
nn.Bilinear(3, 3, 2)(b3, b3 * 2)
nn.Embedding(5, 3)(labels)
nn.Embedding(5, 3, padding_idx=0)(labels)
nn.Embedding(5, 3, max_norm=1.0)(labels)
nn.EmbeddingBag(5, 3)(labels.view(2, 2))
nn.EmbeddingBag(5, 3, mode="sum")(labels, torch.tensor([0, 2]))
nn.EmbeddingBag(5, 3, mode="max")(labels, torch.tensor([0, 2]))
nn.Conv1d(3, 4, 3)(seq)
nn.Conv1d(3, 4, 3, padding="same")(seq)
nn.Conv2d(3, 4, 3)(img)
nn.Conv2d(3, 4, 3, bias=False)(img)
nn.Conv2d(3, 4, 3)(img[0])
nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect")(img)
nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular")(img)
nn.Conv3d(3, 4, 3)(vol)
nn.ConvTranspose1d(3, 4, 3)(seq)
nn.ConvTranspose2d(3, 4, 3, stride=2)(img)
nn.ConvTranspose3d(3, 4, 3)(vol)
nn.LazyLinear(2)(x)
nn.Unfold(2)(img)
nn.Fold((9, 9), 2)(leaf(2, 12, 64))
nn.MaxPool1d(2)(seq)
nn.MaxPool2d(2)(img)
nn.MaxPool2d(2, return_indices=True)(img)[0]
nn.MaxPool3d(2)(vol)
nn.MaxUnpool2d(2)(*nn.MaxPool2d(2, return_indices=True)(img))
nn.AvgPool1d(2)(seq)
nn.AvgPool2d(2)(img)
nn.AvgPool3d(2)(vol)
nn.FractionalMaxPool2d(2, output_size=3)(img)
nn.LPPool1d(2, 2)(seq)
nn.LPPool2d(2, 2)(img)
nn.AdaptiveAvgPool1d(2)(seq)
nn.AdaptiveAvgPool2d(2)(img)
nn.AdaptiveAvgPool2d(1)(img)
nn.AdaptiveAvgPool3d(2)(vol)
nn.AdaptiveMaxPool1d(2)(seq)
nn.AdaptiveMaxPool2d(2)(img)
nn.AdaptiveMaxPool3d(2)(vol)
nn.ReflectionPad1d(1)(seq)
nn.ReflectionPad2d(1)(img)
nn.ReplicationPad2d(1)(img)
nn.ReplicationPad3d(1)(vol)
nn.ZeroPad2d(1)(img)
nn.ConstantPad1d(1, 2.0)(seq)
nn.CircularPad1d(1)(seq)
nn.CircularPad2d(1)(img)
nn.BatchNorm1d(3)(x)
nn.BatchNorm1d(3).eval()(x)
nn.BatchNorm1d(3)(seq)
nn.BatchNorm2d(3)(img)
nn.BatchNorm2d(3).eval()(img)
nn.BatchNorm2d(3, affine=False)(img)
nn.BatchNorm2d(3, track_running_stats=False)(img)
nn.BatchNorm3d(3)(vol)
nn.InstanceNorm1d(3)(seq)
nn.InstanceNorm2d(3, affine=True)(img)
nn.InstanceNorm2d(3, track_running_stats=True)(img)
nn.GroupNorm(3, 3)(img)
nn.GroupNorm(1, 3, affine=False)(img)
nn.LayerNorm(3)(x)
nn.LayerNorm(3, bias=False)(x)
nn.LayerNorm(3, elementwise_affine=False)(x)
nn.LayerNorm([4, 3])(b3)
nn.RMSNorm(3)(x)
nn.RMSNorm(3, elementwise_affine=False)(x)
nn.RMSNorm(3, eps=1e-6)(b3)
nn.LocalResponseNorm(2)(img)
nn.LocalResponseNorm(2)(vol)
nn.CrossMapLRN2d(2)(img)
nn.PixelShuffle(2)(leaf(1, 4, 2, 2))
nn.PixelUnshuffle(2)(img)
nn.ChannelShuffle(3)(img)
nn.Upsample(scale_factor=2)(img)
nn.Upsample(scale_factor=2, mode="bilinear")(img)
nn.Upsample(scale_factor=2, mode="bicubic", align_corners=True)(img)
nn.Upsample(scale_factor=2, mode="linear")(seq)
nn.Upsample(scale_factor=2, mode="trilinear")(vol)
nn.Upsample(size=5, mode="nearest-exact")(img)
F.interpolate(img, scale_factor=0.5, mode="area")
F.interpolate(img, scale_factor=0.5, mode="bilinear", antialias=True)
F.interpolate(img, scale_factor=0.5, mode="bicubic", antialias=True)
nn.CosineSimilarity()(x, y)
nn.PairwiseDistance()(x, y)
F.pairwise_distance(x, y, p=1.0, keepdim=True)
torch.cdist(x, y)
torch.cdist(x, y, p=1.0)
F.pdist(x)
nn.Dropout(0.5)(x)
nn.Dropout1d(0.5)(seq)
nn.Dropout2d(0.5)(img)
nn.Dropout3d(0.5)(vol)
nn.AlphaDropout(0.5)(x)
nn.FeatureAlphaDropout(0.5)(img)
F.dropout(x * 1, 0.5, inplace=True)
torch.native_dropout(x, 0.5, True)[0]
nn.Flatten()(img)
nn.Flatten()(img.transpose(1, 2))
nn.Unflatten(1, (1, 3))(x)
nn.Identity()(x * 1)
nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))(x)
nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2))(img)
F.grid_sample(img, leaf(2, 5, 5, 2))
F.grid_sample(vol, leaf(1, 2, 2, 2, 3))
F.affine_grid(leaf(2, 2, 3), (2, 3, 4, 4))
F.affine_grid(leaf(1, 3, 4), (1, 3, 4, 4, 4))
F.normalize(x)
F.normalize(x, p=1.0)
F.one_hot(labels, 3) * x
F.linear(x, w)
F.linear(x, w, leaf(5))
F.embedding(labels, w)
nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))(x)
nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2))(x)
nn.utils.parametrizations.orthogonal(nn.Linear(3, 3))(x)
nn.utils.parametrizations.orthogonal(nn.Linear(3, 3), "weight", "cayley")(x)
nn.utils.parametrizations.orthogonal(nn.Linear(3, 3), "weight", "householder")(x)
nn.utils.weight_norm(nn.Linear(3, 2))(x)
nn.utils.spectral_norm(nn.Linear(3, 2))(x)
nn.utils.parameters_to_vector(nn.Linear(3, 2).parameters())
"""

ACTIVATIONS = """
F.relu(x)
F.relu_(x * 1)
F.relu6(x)
F.elu(x)
F.elu_(x * 1)
F.selu(x)
F.celu(x)
F.gelu(x)
F.gelu(x, approximate="tanh")
F.silu(x)
F.silu(x * 1, inplace=True)
F.mish(x)
F.leaky_relu(x)
F.leaky_relu_(x * 1)
F.prelu(x, v)
nn.PReLU()(x)
F.rrelu(x)
F.rrelu(x, training=True)
F.hardtanh(x)
F.hardtanh_(x * 1)
F.hardsigmoid(x)
F.hardswish(x)
F.hardshrink(x)
F.softshrink(x)
F.tanhshrink(x)
F.softsign(x)
F.softplus(x)
F.softmin(x, 1)
F.softmax(x, 1)
F.softmax(x, 1, dtype=torch.float64)
F.log_softmax(x, 1)
F.logsigmoid(x)
F.sigmoid(x)
F.tanh(x)
F.glu(leaf(4, 6))
F.threshold(x, 0.7, 0.0)
F.threshold_(x * 1, 0.7, 0.0)
F.gumbel_softmax(x)
F.gumbel_softmax(x, hard=True)
nn.Softmax2d()(img)
"""

RECURRENT = """
nn.LSTM(3, 2)(b3)[0]
nn.LSTM(3, 2)(b3)[1][0]
nn.LSTM(3, 2)(b3)[1][1]
nn.LSTM(3, 2)(x)[0]
nn.LSTM(3, 2, bias=False)(b3)[0]
nn.LSTM(3, 2, batch_first=True)(b3)[0]
nn.LSTM(3, 2, num_layers=2)(b3)[0]
nn.LSTM(3, 2, num_layers=2, dropout=0.5)(b3)[0]
nn.LSTM(3, 2, bidirectional=True)(b3)[0]
nn.LSTM(3, 2, num_layers=2, bidirectional=True, batch_first=True)(b3)[0]
nn.LSTM(3, 4, proj_size=2)(b3)[0]
nn.LSTM(3, 2)(b3, (leaf(1, 4, 2), leaf(1, 4, 2)))[0]
nn.LSTM(3, 2)(pack(b3, [2, 2, 1, 1]))[0].data
nn.LSTM(3, 2, bidirectional=True)(pack(b3, [2, 2, 1, 1]))[0].data
unpack(nn.LSTM(3, 2)(pack(b3, [2, 2, 1, 1]))[0])[0]
unpack(nn.LSTM(3, 2)(pack(b3, [1, 2, 1, 2], enforce_sorted=False))[0])[0]
nn.LSTM(3, 2)(pack(b3, [2, 2, 1, 1]))[1][0]
nn.GRU(3, 2)(b3)[0]
nn.GRU(3, 2)(b3)[1]
nn.GRU(3, 2)(x)[0]
nn.GRU(3, 2, bias=False)(b3)[0]
nn.GRU(3, 2, batch_first=True)(b3)[0]
nn.GRU(3, 2, num_layers=2, bidirectional=True)(b3)[0]
nn.GRU(3, 2)(b3, leaf(1, 4, 2))[0]
nn.GRU(3, 2)(pack(b3, [2, 2, 1, 1]))[0].data
nn.RNN(3, 2)(b3)[0]
nn.RNN(3, 2)(b3)[1]
nn.RNN(3, 2, nonlinearity="relu")(b3)[0]
nn.RNN(3, 2, num_layers=2, bidirectional=True)(b3)[0]
nn.RNN(3, 2, bias=False, batch_first=True)(b3)[0]
nn.RNN(3, 2)(pack(b3, [2, 2, 1, 1]))[0].data
nn.LSTMCell(3, 2)(x)[0]
nn.LSTMCell(3, 2)(x)[1]
nn.LSTMCell(3, 2, bias=False)(x)[0]
nn.GRUCell(3, 2)(x)
nn.RNNCell(3, 2)(x)
nn.RNNCell(3, 2, nonlinearity="relu")(x)
"""

ATTENTION = """
F.scaled_dot_product_attention(b3, b3 * 2, b3 * 3)
F.scaled_dot_product_attention(b3, b3, b3, is_causal=True)
F.scaled_dot_product_attention(b3, b3, b3, torch.ones(4, 4, dtype=torch.bool))
F.scaled_dot_product_attention(b3, b3, b3, torch.ones(4, 4))
F.scaled_dot_product_attention(b3, b3, b3, leaf(4, 4))
F.scaled_dot_product_attention(b3, b3, b3, scale=0.5)
F.scaled_dot_product_attention(heads(), heads(), heads())
F.scaled_dot_product_attention(heads(), heads(), heads(), is_causal=True)
F.scaled_dot_product_attention(heads(), heads(), heads(), torch.ones(4, 4))
F.scaled_dot_product_attention(heads(), heads(), heads(), leaf(4, 4))
F.scaled_dot_product_attention(heads(), heads(), heads(), dropout_p=0.5)
F.scaled_dot_product_attention(leaf(1, 4, 4, 3), heads(), heads(), enable_gqa=True)
nn.MultiheadAttention(4, 2)(words(), words(), words())[0]
nn.MultiheadAttention(4, 2)(words(), words(), words())[1]
nn.MultiheadAttention(4, 2)(*[words()] * 3, need_weights=False)[0]
nn.MultiheadAttention(4, 2)(*[words()] * 3)[0]
nn.MultiheadAttention(4, 2, batch_first=True)(*[words()] * 3, need_weights=False)[0]
nn.MultiheadAttention(4, 2, bias=False)(*[words()] * 3)[0]
nn.MultiheadAttention(4, 2, add_bias_kv=True)(*[words()] * 3)[0]
nn.MultiheadAttention(4, 2, add_zero_attn=True)(*[words()] * 3)[0]
nn.MultiheadAttention(4, 2, kdim=3, vdim=5)(words(), leaf(3, 2, 3), leaf(3, 2, 5))[0]
nn.MultiheadAttention(4, 2)(*[words()] * 3, attn_mask=torch.zeros(3, 3))[0]
nn.MultiheadAttention(4, 2)(*[words()] * 3, None, False, m.detach(), is_causal=True)[0]
nn.MultiheadAttention(4, 2)(*[words()] * 3, key_padding_mask=mask[:2] & False)[0]
nn.MultiheadAttention(4, 2)(*[leaf(3, 4)] * 3)[0]
nn.MultiheadAttention(4, 2, dropout=0.5)(*[words()] * 3)[0]
nn.TransformerEncoderLayer(4, 2, 8)(words())
nn.TransformerEncoderLayer(4, 2, 8, norm_first=True, activation="gelu")(words())
nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)(words())
nn.TransformerDecoderLayer(4, 2, 8)(words(), words())
nn.Transformer(4, 2, 1, 1, 8)(words(), words())
"""

POINTWISE = """
x + y
x + 1
1 + x
x + v
x - y
2 - x
torch.rsub(x, y)
torch.add(x, y, alpha=2)
x * y
x * 2
x * s
x / y
x / 2
2 / x
torch.div(x, y, rounding_mode="floor")
x // y
x % y
x % 2
torch.fmod(x, y)
torch.fmod(x, 2)
x ** 2
x ** y
2 ** x
-x
abs(x)
x.exp()
x.exp2()
x.expm1()
x.log()
x.log2()
x.log1p()
x.sqrt()
x.rsqrt()
x.square()
x.reciprocal()
x.sin() + x.cos() + x.tan()
x.sigmoid().asin() + (x / 2).acos() + x.atan()
x.sinh() + x.cosh() + x.tanh()
x.asinh() + (x + 1).acosh() + (x / 2).atanh()
x.floor() + x.ceil() + x.round() + x.trunc() + x.frac() + x.sign() + x.sgn()
x.round(decimals=1)
x.erf() + x.erfc() + (x / 2).erfinv()
x.lgamma() + x.digamma() + torch.polygamma(1, x) + x.mvlgamma(1)
x.sinc() + x.i0() + x.logit(0.1) + x.nan_to_num() + x.deg2rad()
special.i0e(x) + special.i1(x) + special.i1e(x) + special.ndtri(x / 2)
special.xlogy(x, y) + special.xlog1py(x, y) + special.zeta(x + 1, 2.0 + y.detach())
special.entr(x) + special.ndtr(x) + special.log_ndtr(x) + special.erfcx(x)
special.expit(x) + special.exp2(x) + special.logsumexp(x, 1, True)
torch.atan2(x, y) + torch.hypot(x, y) + torch.logaddexp(x, y) + torch.logaddexp2(x, y)
torch.maximum(x, y) + torch.minimum(x, y) + torch.fmax(x, y) + torch.fmin(x, y)
torch.copysign(x, y) + torch.copysign(x, -1.0)
torch.float_power(x, 2)
torch.lerp(x, y, 0.3) + torch.lerp(x, y, z)
torch.addcmul(x, y, z) + torch.addcdiv(x, y, z, value=2)
torch.clamp(x, 0.6, 1.0)
torch.clamp(x, min=0.6)
torch.clamp(x, y.detach(), z)
torch.clamp_max(x, 1.0) + torch.clamp_min(x, 0.6) + x.clip(0.1, 0.2)
torch.where(mask, x, y)
torch.where(mask, x, 0.0)
torch.where(mask, 1.0, x)
torch.ldexp(x, torch.ones(4, 3))
torch.frexp(x)[0]
x.masked_fill(mask, 0.0)
x.masked_fill(mask, s)
x.double() + x.half().float() + x.to(torch.bfloat16).float()
x.to(torch.float64)
x.type(torch.float64)
x.type_as(torch.ones(1, dtype=torch.float64))
x.clone()
x.t().contiguous()
x.detach().requires_grad_() * 2
(x / 2).bernoulli()
x.renorm(2, 0, 1.0)
torch.igamma(x.detach(), y) + torch.igammac(x.detach(), y)
c.real + c.imag
c.abs() + c.angle()
c.conj() * c
torch.view_as_real(c)
torch.view_as_complex(leaf(3, 2))
torch.complex(x, y)
torch.polar(x, y)
c.conj().resolve_conj()
c.mH @ c
torch.resolve_neg(c.conj().imag)
torch.conj_physical(c)
c.exp() * 2j
"""

REDUCTIONS = """
x.sum()
x.sum(0)
x.sum((0, 1), keepdim=True)
x.sum(1, dtype=torch.float64)
x.nansum()
x.mean()
x.mean(1)
x.mean((0, 1), keepdim=True)
x.nanmean()
x.prod()
x.prod(1)
x.var()
x.var(1)
x.var(1, unbiased=False)
x.std(0, correction=0)
x.std()
torch.var_mean(x, 1)[0] + torch.var_mean(x, 1)[1]
torch.std_mean(x)[0]
x.max()
x.min()
x.max(1)[0]
x.min(1).values
x.amax(1) + x.amin(1)
torch.aminmax(x, dim=1)[0]
x.median()
x.median(1)[0]
x.nanmedian()
x.mode(1)[0]
x.kthvalue(2)[0]
x.quantile(0.3)
x.nanquantile(0.3, dim=1)
x.norm()
x.norm(dim=1)
x.norm(p=1)
x.norm(p=float("inf"), dim=1)
x.norm(dtype=torch.float64)
torch.linalg.norm(x)
torch.linalg.norm(m, 2)
torch.linalg.norm(m, "nuc")
torch.linalg.vector_norm(x, 3)
torch.linalg.matrix_norm(m)
torch.dist(x, y)
x.logsumexp(1)
x.cumsum(0) + x.cumprod(1) + x.logcumsumexp(0)
x.cummax(0)[0] + x.cummin(1)[0]
x.sort(1)[0]
x.sort(stable=True)[0]
x.argsort(0) * x
x.topk(2)[0]
x.msort()
x.diff()
torch.trapezoid(x, y)
torch.trapezoid(x, dx=2.0)
torch.cumulative_trapezoid(x)
torch.gradient(x)[0]
torch.cov(x)
torch.corrcoef(x)
torch.histc(x.detach()) * s
x.unique()
torch.bincount(labels, weights=None) * s
torch.masked.sum(x, mask=mask)
torch.masked.softmax(x, 1, mask=mask)
torch.count_nonzero(x) * s
"""

SHAPES = """
x.view(3, 4)
x.view(-1)
x.reshape(3, 4)
x.t().reshape(-1)
x.t()
x.T
x.mT
b3.transpose(0, 2)
b3.permute(2, 0, 1)
b3.movedim(0, 2)
b3.swapaxes(0, 1)
x.expand(2, 4, 3)
x.expand_as(b3)
x.broadcast_to((2, 4, 3))
x.repeat(2, 1)
x.repeat_interleave(2)
x.repeat_interleave(2, dim=0)
x.repeat_interleave(torch.tensor([1, 2, 1, 0]), dim=0)
x.tile(2)
x.unsqueeze(0)
x.unsqueeze(-1).squeeze()
x.unsqueeze(0).squeeze(0)
x.unsqueeze(0).unsqueeze(0).squeeze((0, 1))
x.flatten()
b3.flatten(1)
b3.transpose(0, 1).flatten()
x.unflatten(1, (1, 3))
x.ravel()
x.chunk(2)[1]
x.split(2)[0]
x.split([1, 3])[1]
torch.tensor_split(x, 2)[0]
torch.hsplit(x, 3)[0] + torch.vsplit(x, 4)[0].sum()
x.unbind()[1]
x.unbind(1)[0]
x.narrow(0, 1, 2)
x.select(0, 1)
x.diagonal()
x.diag()
v.diag()
v.diag_embed()
v.diagflat()
x.tril() + x.triu()
x.flip(0)
x.fliplr()
x.flipud()
x.rot90()
x.roll(1)
x.roll(1, 0)
x.as_strided((2, 2), (1, 2))
x.unfold(0, 2, 1)
torch.cat([x, y])
torch.cat([x, y.detach(), x], 1)
torch.stack([x, y])
torch.hstack([x, y]) + torch.hstack([y, x])
torch.vstack([x, y])
torch.dstack([x, y])
torch.column_stack([x, y])
torch.block_diag(x, y)
torch.meshgrid(v, v, indexing="ij")[0]
torch.cartesian_prod(v, v)
torch.combinations(v)
torch.broadcast_tensors(x, v)[1]
torch.atleast_3d(x)
torch.kron(x, y)
torch.squeeze_copy(x.unsqueeze(0))
torch.view_copy(x, (12,))
torch.nn.functional.pad(x, (1, 1))
torch.nn.functional.pad(x, (-1, 0))
torch.nn.functional.pad(x, (1, 1), value=2.0)
torch.nn.functional.pad(seq, (1, 1), mode="reflect")
torch.constant_pad_nd(x, (1, 1))
torch.nn.utils.rnn.pad_sequence([x, y[:2]])
torch.nn.utils.rnn.pack_sequence([x, y[:2]]).data
torch.vander(v)
torch.bmm(b3, b3.mT)
x.to_sparse().to_dense()
"""

INDEXING = """
x[0]
x[1:3]
x[:, 1]
x[..., 0]
x[None]
x[::2]
x[1:3, 0]
x[...]
x[:]
x[0, 1]
x[-1][0]
x[index]
x[:, index]
x[index, index]
x[[0, 1]]
x[mask]
x[mask[:, 0]]
x[mask[:, 0], 1]
x[0, index]
x[None, index]
x[index][:, 0]
x[torch.tensor(1)]
x[True]
x.gather(1, labels[:, None])
x.scatter(1, labels[:, None], 2.0)
x.scatter(1, labels[:, None], y)
x.scatter_add(1, labels[:, None], y)
x.scatter_reduce(1, labels[:, None], y, "amax")
x.scatter_reduce(1, labels[:, None], y, "mean")
x.index_select(0, index)
x.index_add(0, index, y[:2])
x.index_copy(0, index, y[:2])
x.index_fill(0, index, 1.0)
x.index_fill(0, index, s)
x.index_put((index,), v)
x.index_put((index,), v, accumulate=True)
x.index_reduce(0, index, y[:2], "amax")
x.masked_select(mask)
x.masked_scatter(mask, y)
x.take(index)
x.take_along_dim(labels[:, None], 1)
x.put(index, v[:2])
torch.select_scatter(x, v, 0, 1)
torch.slice_scatter(x, y[:2], 0, 1, 3)
torch.diagonal_scatter(m, v)
torch.as_strided_scatter(x, v, (3,), (1,))
torch.unravel_index(index, (2, 2))[0] * s
torch.nonzero(x)[0] * s
torch.searchsorted(v.detach(), s.detach()) * s
torch.bucketize(s.detach(), v.detach()) * s
"""

PRODUCTS = """
x @ y.T
x @ v
v @ v
v @ x.T
b3 @ m
b3 @ b3.mT
v @ b3.mT
torch.mm(x, m)
torch.mv(x, v)
torch.dot(v, v)
torch.vdot(v, v)
torch.inner(x, v)
torch.inner(x, y)
torch.outer(v, v)
torch.ger(v, v)
torch.matmul(b3, v)
torch.matmul(x, b3.mT)
torch.addmm(m, x.T, y)
torch.addmm(v, x, m, beta=2, alpha=3)
torch.addmv(v, m, v)
torch.addr(m, v, v)
torch.addbmm(leaf(4, 4), b3, b3.mT)
torch.baddbmm(leaf(2, 4, 4), b3, b3.mT)
torch.chain_matmul(x, m, m)
torch.linalg.multi_dot([x, m, m])
torch.tensordot(x, y, 2)
torch.tensordot(x, m, 1)
torch.tensordot(b3, m, dims=([2], [0]))
torch.einsum("ij,kj->ik", x, y)
torch.einsum("ij,jk", x, m)
torch.einsum("ii", m)
torch.einsum("ij->", x)
torch.einsum("ij,ij->i", x, y)
torch.einsum("bij,jk->bik", b3, m)
torch.einsum("i,j->ij", v, v)
torch.einsum("bij,bkj->bik", b3, b3)
torch.einsum("ij,jk,kl->il", x, m, m)
torch.einsum("...j,kj->...k", b3, m)
torch.trace(m)
torch.cross(x, y, dim=1)
torch.linalg.cross(x, y)
torch.matrix_power(m, 3)
torch.bilinear(x, y, leaf(2, 3, 3), leaf(2))
torch.conv1d(seq, leaf(4, 3, 3))
torch.conv2d(img, leaf(4, 3, 3, 3), leaf(4))
torch.conv_tbc(b3, leaf(2, 3, 4), leaf(4))
torch.linalg.vecdot(x, y)
"""

LINALG = """
torch.linalg.inv(m)
torch.inverse(m)
torch.linalg.det(m)
torch.linalg.slogdet(m)[1]
torch.logdet(m @ m.T + torch.eye(3))
torch.linalg.cholesky(m @ m.T + torch.eye(3))
torch.cholesky_solve(v[:, None], torch.linalg.cholesky(m @ m.T + torch.eye(3)))
torch.cholesky_inverse(torch.linalg.cholesky(m @ m.T + torch.eye(3)))
torch.linalg.qr(m)[0]
torch.linalg.qr(x)[1]
torch.linalg.svd(m)[1]
torch.linalg.svd(m, full_matrices=False)[0]
torch.svd(m)[0]
torch.linalg.svdvals(m)
torch.linalg.eigh(m)[0]
torch.linalg.eigh(m)[1].abs()
torch.linalg.eigvalsh(m)
torch.linalg.eig(m)[0].abs()
torch.linalg.eigvals(m).abs()
torch.linalg.solve(m, v)
torch.linalg.solve(m, m)
torch.linalg.solve_triangular(m, v[:, None], upper=True)
torch.triangular_solve(v[:, None], m)[0]
torch.linalg.lstsq(x, y)[0]
torch.linalg.pinv(x)
torch.linalg.pinv(m, hermitian=True)
torch.linalg.lu(m)[1]
torch.linalg.lu_factor(m)[0]
torch.lu_unpack(*torch.linalg.lu_factor(m))[1]
torch.linalg.lu_solve(*torch.linalg.lu_factor(m), v[:, None])
torch.linalg.matrix_exp(m)
torch.linalg.matrix_power(m, -2)
torch.linalg.cond(m)
torch.linalg.householder_product(x, v)
torch.linalg.tensorinv(leaf(4, 2, 2), 1)
torch.linalg.tensorsolve(leaf(4, 2, 2), leaf(4))
torch.linalg.vander(v)
torch.linalg.matrix_norm(m, "nuc")
torch.fft.fft(v).abs()
torch.fft.ifft(c)
torch.fft.rfft(v).real
torch.fft.irfft(c)
torch.fft.fft2(x).imag
torch.fft.ifft2(c).abs()
torch.fft.rfft2(x).abs()
torch.fft.irfftn(c)
torch.fft.fftn(x).real
torch.fft.hfft(c[0])
torch.fft.ihfft(v).real
torch.fft.fftshift(x)
torch.fft.fft(x, n=5, norm="ortho").abs()
stft(leaf(16)).abs()
torch.istft(stft(leaf(16)), 8, window=torch.ones(8))
"""

STATEMENTS = [
    "a = x * 1; a.add_(y)",
    "a = x * 1; a += 1",
    "a = x * 1; a.mul_(y)",
    "a = x * 1; a.zero_()",
    "a = x * 1; a.fill_(2)",
    "a = x * 1; a.fill_(s)",
    "a = x * 1; a[0] = 1",
    "a = x * 1; a[0] = v",
    "a = x * 1; a[:, 1] = 2.0",
    "a = x * 1; a[1:3] = y[:2]",
    "a = x * 1; a[mask] = 0",
    "a = x * 1; a[mask] = s",
    "a = x * 1; a[index] = v",
    "a = x * 1; a[index] = 1.0",
    "a = x * 1; a[0, 1] = 5.0",
    "a = x * 1; a[...] = y",
    "a = x * 1; a[0].mul_(2)",
    "a = x * 1; a[0].copy_(v)",
    "a = x * 1; a.copy_(y)",
    "a = torch.zeros(4, 3); a.copy_(x)",
    "a = torch.zeros(4, 3); a[0] = v",
    "a = torch.zeros(4, 3); a[:, 0] = x[:, 1]",
    "a = torch.zeros(4, 3); a[index] = v",
    "a = torch.zeros(4, 3); a[0].add_(v)",
    "a = torch.zeros(4, 3); b = a[0]; b.add_(v); a = b",
    "a = torch.zeros(4, 3); b = a.view(-1); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.t(); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.unsqueeze(0); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.view(-1)[2:5]; a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.transpose(0, 1).unsqueeze(0); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.diagonal(); a.mul_(x); a = b",
    "a = torch.zeros(4, 3); b = a.expand(2, 4, 3); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.squeeze(); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.permute(1, 0); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.select(1, 0); a.add_(x); a = b",
    "a = torch.zeros(4, 3); b = a.detach(); a.add_(x)",
    "a = x * 1; b = a.split(2); a = b[0] * 2",
    "a = x * 1; a.t_()",
    "a = x * 1; a.transpose_(0, 1)",
    "a = x * 1; a.unsqueeze_(0)",
    "a = x * 1; a.unsqueeze_(0).squeeze_(0)",
    "a = x * 1; a.squeeze_()",
    "a = x * 1; a.swapaxes_(0, 1)",
    "a = x * 1; a.sqrt_().exp_().clamp_(0, 1).neg_()",
    "a = x * 1; a.relu_(); a.sigmoid_(); a.tanh_()",
    "a = x * 1; a.div_(y).sub_(1).pow_(2)",
    "a = x * 1; a.addcmul_(y, z).lerp_(y, 0.5)",
    "a = x * 1; a.masked_fill_(mask, 0)",
    "a = x * 1; a.masked_fill_(mask, s)",
    "a = x * 1; a.index_add_(0, index, y[:2]).index_fill_(0, index, 0)",
    "a = x * 1; a.scatter_(1, labels[:, None], y)",
    "a = x * 1; a.scatter_add_(1, labels[:, None], y)",
    "a = x * 1; a.tril_().triu_()",
    "a = x * 1; a.uniform_()",
    "a = x * 1; a.normal_()",
    "a = x * 1; a.bernoulli_()",
    "a = x * 1; a.fill_diagonal_(0)",
    "a = x * 1; a.cumsum_(0)",
    "a = x * 1; a.round_().floor_()",
    "a = x * 1; a.index_put_((index,), v)",
    "a = x * 1; a.as_strided_((2, 2), (1, 2))",
    "a = x * 1; a.diagonal().fill_(1)",
    "a = x * 1; a.diagonal().zero_()",
    "a = x * 1; a.view(-1)[0] = 3",
    "a = x * 1; a.t().add_(1)",
    "a = x * 1; b = a[0]; b.zero_(); a = b",
    "a = x * 1; b = a[0]; b.fill_(2); a = b",
    "a = x * 1; b = a[0][1]; b.mul_(2); a = b + a.sum()",
    "a = x * 1; b = a.narrow(0, 0, 2); b.addmm_(y[:2], m)",
    "with torch.no_grad():\n    b = x.view(-1)\na = x * b.sum()",
    "a, = grad((x ** 3).sum(), x, create_graph=True)",
    "a, = grad((x * y).sum(), x, create_graph=True)",
    "a, = grad(x.exp().sum(), x, create_graph=True)",
    "a, = grad(x.tanh().sum(), x, create_graph=True)",
    "a, = grad(x.sigmoid().sum(), x, create_graph=True)",
    "a, = grad(x.log().mean(), x, create_graph=True)",
    "a, = grad((x @ m).sum(), x, create_graph=True)",
    "a, = grad((x / y).sum(), y, create_graph=True)",
    "a, = grad(x.softmax(1).square().sum(), x, create_graph=True)",
    "a, = grad(x.log_softmax(1).square().sum(), x, create_graph=True)",
    "a, = grad(F.relu(x).square().sum(), x, create_graph=True)",
    "a, = grad(F.gelu(x).sum(), x, create_graph=True)",
    "a, = grad(F.silu(x).sum(), x, create_graph=True)",
    "a, = grad(F.softplus(x).sum(), x, create_graph=True)",
    "a, = grad(F.leaky_relu(x).square().sum(), x, create_graph=True)",
    "a, = grad(F.elu(x).sum(), x, create_graph=True)",
    "a, = grad(F.mse_loss(x, y), x, create_graph=True)",
    "a, = grad(F.linear(x, w).square().sum(), w, create_graph=True)",
    "a, = grad(F.conv2d(img, leaf(2, 3, 3, 3)).square().sum(), img, create_graph=True)",
    "a, = grad(x.norm(), x, create_graph=True)",
    "a, = grad(x.var(), x, create_graph=True)",
    "a, = grad(x.max() ** 2, x, create_graph=True)",
    "a, = grad(x.max(1)[0].square().sum(), x, create_graph=True)",
    "a, = grad(x.cumsum(0).square().sum(), x, create_graph=True)",
    "a, = grad(x[0].square().sum(), x, create_graph=True)",
    "a, = grad(x[index].square().sum(), x, create_graph=True)",
    "a, = grad(x.t().square().sum(), x, create_graph=True)",
    "a, = grad(torch.cat([x, y]).square().sum(), x, create_graph=True)",
    "a, = grad(torch.linalg.inv(m).sum(), m, create_graph=True)",
    "a, = grad(F.layer_norm(x, (3,)).square().sum(), x, create_graph=True)",
    "a, = grad(F.avg_pool2d(img, 2).square().sum(), img, create_graph=True)",
    "a, = grad(F.max_pool2d(img, 2).square().sum(), img, create_graph=True)",
    "class Cube(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n"
    "        ctx.save_for_backward(a)\n        return a ** 3\n    @staticmethod\n"
    "    def backward(ctx, g):\n        a, = ctx.saved_tensors\n        return 3 * a ** 2 * g\n"
    "a = Cube.apply(x * 2) + 1",
    "class Two(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a, n, b):\n"
    "        return a * n, b * n\n    @staticmethod\n    def backward(ctx, g, h):\n"
    "        return g, None, h\n"
    "a = Two.apply(x, 2, y); a = a[1]",
    "class Write(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n"
    "        ctx.mark_dirty(a)\n        return a.add_(1)\n    @staticmethod\n"
    "    def backward(ctx, g):\n        return g\n"
    "a = Write.apply(x * 2)",
    "a = checkpoint(lambda t: t.exp() * 2, x, use_reentrant=True)",
    "a = checkpoint(lambda t: t.exp() * 2, x, use_reentrant=False)",
    "a = torch.func.functional_call(nn.Linear(3, 2), {'weight': w[:2]}, (x,))",
    "a = D.Normal(x, y).log_prob(z)",
    "a = D.Normal(x, y).rsample()",
    "a = D.kl_divergence(D.Normal(x, y), D.Normal(y, z)).sum()",
    "a = D.Categorical(logits=x).log_prob(labels)",
    "a = D.Categorical(probs=x).entropy()",
    "a = D.Bernoulli(logits=x).log_prob(mask.float())",
    "a = D.Gamma(x, y).rsample()",
    "a = D.Beta(x, y).rsample()",
    "a = D.Dirichlet(x).rsample()",
    "a = D.MultivariateNormal(v, torch.eye(3) * s).log_prob(v.detach())",
]

FAMILIES = {"loss": LOSSES, "layer": LAYERS, "activation": ACTIVATIONS, "recurrent": RECURRENT,
            "attention": ATTENTION, "pointwise": POINTWISE, "reduction": REDUCTIONS,
            "shape": SHAPES, "indexing": INDEXING, "product": PRODUCTS, "linalg": LINALG}


def programs():
    """The programs; each leaves its result in `a`."""
    for family in FAMILIES.values():
        yield from (line for line in family.strip().splitlines())
    yield from STATEMENTS


def run(program, torch):
    """The tensor `a` of a program."""
    rnn = import_module(f"{torch.__name__}.nn.utils.rnn")
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional,
             "pack": rnn.pack_padded_sequence, "unpack": rnn.pad_packed_sequence,
             "D": torch.distributions, "special": torch.special,
             "grad": torch.autograd.grad,
             "checkpoint": import_module(f"{torch.__name__}.utils.checkpoint").checkpoint}
    exec(SETUP, names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(program, "program", "eval")
        except SyntaxError:
            exec(program, names)
            return names["a"]
        return eval(program, names)


def graph(tensor):
    """The nodes behind a tensor, breadth first."""
    if tensor.grad_fn is None:
        return []
    place, queue, lines = {tensor.grad_fn: 0}, [tensor.grad_fn], []
    for node in queue:
        edges = []
        for following, index in node.next_functions:
            if following is None:
                edges.append("-")
                continue
            if following not in place:
                place[following] = len(queue)
                queue.append(following)
            edges.append(f"{place[following]}" + (f".{index}" if index else ""))
        saved = sorted(n[7:] for n in dir(node) if n.startswith("_saved_"))
        lines.append(f"{node.name()}({', '.join(saved)}) {' '.join(edges)}".rstrip())
    return lines


def main():
    import torch
    recorded = {program: graph(run(program, torch)) for program in programs()}
    FILE.write_text(json.dumps({k: "; ".join(v) for k, v in recorded.items()}, indent=0) + "\n")


if __name__ == "__main__":
    main()
