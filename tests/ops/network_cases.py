"""Small calls of the functions of neural networks, which run alike on PyTorch and on flambeau.

`CASES[name](torch, make)` gives a tensor; `make` draws its inputs in float64, the same on either.
"""
import numpy as np

CASES = {}


def case(name):
    def register(function):
        CASES[name] = function
        return function
    return register


def simple(name, call, *shapes, **options):
    """A case that calls `call(torch, F, *tensors)` on inputs of these shapes."""
    CASES[name] = lambda torch, make: call(
        torch, torch.nn.functional, *[make(*s, **options) for s in shapes])


class Maker:
    """Draws the inputs of one case and remembers those that take gradients."""

    def __init__(self, torch, name, dtype=None):
        self.torch, self.dtype = torch, dtype
        seed = sum(ord(c) * (i + 1) for i, c in enumerate(name))
        self.random = np.random.RandomState(seed % 2**31)
        self.inputs = []

    def __call__(self, *shape, low=None, high=None, grad=True, apart=False):
        if apart:               # all differ by more than any finite difference
            values = self.random.permutation(int(np.prod(shape))).reshape(shape) * 0.1 - 1
        elif low is None:
            values = self.random.standard_normal(shape)
        else:
            values = self.random.uniform(low, high, shape)
        tensor = self.torch.tensor(np.asarray(values, np.float64).tolist(),
                                   dtype=self.dtype or self.torch.float64)
        tensor = tensor.reshape(shape).requires_grad_(grad)
        if grad:
            self.inputs.append(tensor)
        return tensor

    def integers(self, high, *shape):
        return self.torch.tensor(self.random.randint(0, high, shape).tolist()).reshape(shape)


# ---- activations ---------------------------------------------------------------------------------

for _name in ("relu", "relu6", "gelu", "silu", "elu", "leaky_relu", "selu", "celu", "softplus",
              "softsign", "hardtanh", "hardsigmoid", "hardswish", "tanh", "sigmoid", "mish",
              "logsigmoid", "glu", "hardshrink", "softshrink", "tanhshrink"):
    simple(_name, lambda t, F, x, n=_name: getattr(F, n)(x * 3), (3, 4))
simple("gelu_tanh", lambda t, F, x: F.gelu(x * 3, approximate="tanh"), (3, 4))
simple("elu_alpha", lambda t, F, x: F.elu(x, 0.7), (3, 4))
simple("celu_alpha", lambda t, F, x: F.celu(x, 0.7), (3, 4))
simple("softplus_beta", lambda t, F, x: F.softplus(x * 9, 2.5, 10), (3, 4))
simple("hardtanh_range", lambda t, F, x: F.hardtanh(x, -0.3, 0.9), (3, 4))
simple("leaky_relu_slope", lambda t, F, x: F.leaky_relu(x, 0.3), (3, 4))
simple("threshold", lambda t, F, x: F.threshold(x, 0.1, 20.0), (3, 4))
simple("prelu", lambda t, F, x, w: F.prelu(x, w), (2, 3, 4), (3,))
simple("prelu_one", lambda t, F, x, w: F.prelu(x, w), (2, 3), (1,))
simple("glu_dim", lambda t, F, x: F.glu(x, 0), (4, 3))
simple("rrelu_eval", lambda t, F, x: F.rrelu(x), (3, 4))
simple("hardshrink_limit", lambda t, F, x: F.hardshrink(x, 0.3), (3, 4))

# ---- softmax -------------------------------------------------------------------------------------

simple("softmax", lambda t, F, x: F.softmax(x, 1), (3, 4))
simple("softmax_first", lambda t, F, x: t.softmax(x, 0), (3, 4, 2))
simple("softmin", lambda t, F, x: F.softmin(x, -1), (3, 4))
simple("log_softmax", lambda t, F, x: F.log_softmax(x, 1), (3, 4))
simple("log_softmax_middle", lambda t, F, x: x.log_softmax(1), (2, 3, 4))

# ---- affine --------------------------------------------------------------------------------------

simple("linear", lambda t, F, x, w, b: F.linear(x, w, b), (2, 3), (4, 3), (4,))
simple("linear_3d", lambda t, F, x, w: F.linear(x, w), (2, 2, 3), (4, 3))
simple("bilinear", lambda t, F, x, y, w, b: F.bilinear(x, y, w, b), (2, 3), (2, 4), (5, 3, 4), (5,))
simple("bilinear_3d", lambda t, F, x, y, w: F.bilinear(x, y, w), (2, 2, 3), (2, 2, 4), (3, 3, 4))

# ---- convolution ---------------------------------------------------------------------------------

simple("conv1d", lambda t, F, x, w, b: F.conv1d(x, w, b), (2, 3, 7), (4, 3, 3), (4,))
simple("conv1d_unbatched", lambda t, F, x, w: F.conv1d(x, w, None, 2, 1), (3, 7), (4, 3, 3))
simple("conv2d", lambda t, F, x, w, b: F.conv2d(x, w, b), (2, 3, 5, 6), (4, 3, 3, 2), (4,))
simple("conv2d_geometry", lambda t, F, x, w: F.conv2d(x, w, None, (2, 1), (1, 2), (1, 2)),
       (2, 2, 6, 6), (3, 2, 2, 3))
simple("conv2d_groups", lambda t, F, x, w, b: F.conv2d(x, w, b, 2, 1, 1, 2), (1, 4, 5, 5),
       (6, 2, 3, 3), (6,))
simple("conv2d_depthwise", lambda t, F, x, w: F.conv2d(x, w, groups=3), (2, 3, 4, 4), (3, 1, 2, 2))
simple("conv2d_same", lambda t, F, x, w: F.conv2d(x, w, padding="same", dilation=(1, 2)),
       (1, 2, 5, 5), (2, 2, 2, 3))
simple("conv2d_valid", lambda t, F, x, w: F.conv2d(x, w, padding="valid"), (1, 2, 4, 4),
       (2, 2, 2, 3))
simple("conv3d", lambda t, F, x, w, b: F.conv3d(x, w, b, 1, 1), (1, 2, 3, 4, 3), (2, 2, 2, 2, 2),
       (2,))
simple("conv_transpose1d", lambda t, F, x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1), (2, 3, 4),
       (3, 2, 3), (2,))
simple("conv_transpose2d", lambda t, F, x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1, 2, 1),
       (2, 4, 3, 3), (4, 2, 3, 3), (4,))
simple("conv_transpose2d_dilated", lambda t, F, x, w: F.conv_transpose2d(
    x, w, None, 1, (0, 1), 0, 1, (2, 1)), (1, 2, 3, 3), (2, 2, 2, 3))
simple("conv_transpose3d", lambda t, F, x, w: F.conv_transpose3d(x, w, None, 2), (1, 2, 2, 2, 2),
       (2, 1, 2, 2, 2))
simple("conv_tbc", lambda t, F, x, w, b: t.conv_tbc(x, w, b, 1), (5, 2, 3), (3, 3, 2), (2,))
simple("unfold", lambda t, F, x: F.unfold(x, (2, 3), (1, 1), (1, 0), (2, 1)), (2, 2, 4, 5))
simple("fold", lambda t, F, x: F.fold(x, (4, 5), (2, 2), 1, 1, 2), (2, 8, 9))

# ---- pooling -------------------------------------------------------------------------------------

simple("max_pool1d", lambda t, F, x: F.max_pool1d(x, 3, 2, 1), (2, 3, 8), apart=True)
simple("max_pool2d", lambda t, F, x: F.max_pool2d(x, 2), (2, 2, 4, 6), apart=True)
simple("max_pool2d_geometry", lambda t, F, x: F.max_pool2d(x, (3, 2), (2, 1), 1, (1, 2), True),
       (1, 2, 6, 7), apart=True)
simple("max_pool2d_unbatched", lambda t, F, x: F.max_pool2d(x, 2, 1), (2, 4, 4), apart=True)
simple("max_pool3d", lambda t, F, x: F.max_pool3d(x, 2), (1, 2, 4, 4, 4), apart=True)
simple("avg_pool1d", lambda t, F, x: F.avg_pool1d(x, 3, 2, 1), (2, 3, 8))
simple("avg_pool2d", lambda t, F, x: F.avg_pool2d(x, (2, 3), 2, 1), (2, 2, 5, 6))
simple("avg_pool2d_ceil", lambda t, F, x: F.avg_pool2d(x, 2, 2, 1, True, False), (1, 2, 5, 5))
simple("avg_pool2d_divisor", lambda t, F, x: F.avg_pool2d(x, 2, divisor_override=3), (1, 2, 4, 4))
simple("avg_pool3d", lambda t, F, x: F.avg_pool3d(x, 2, 1), (1, 2, 3, 3, 3))
simple("adaptive_avg_pool1d", lambda t, F, x: F.adaptive_avg_pool1d(x, 3), (2, 2, 7))
simple("adaptive_avg_pool2d", lambda t, F, x: F.adaptive_avg_pool2d(x, (2, 3)), (2, 2, 5, 7))
simple("adaptive_avg_pool2d_one", lambda t, F, x: F.adaptive_avg_pool2d(x, 1), (2, 2, 5, 7))
simple("adaptive_avg_pool3d", lambda t, F, x: F.adaptive_avg_pool3d(x, (2, None, 1)),
       (1, 2, 3, 2, 3))
simple("adaptive_max_pool1d", lambda t, F, x: F.adaptive_max_pool1d(x, 3), (2, 2, 7), apart=True)
simple("adaptive_max_pool2d", lambda t, F, x: F.adaptive_max_pool2d(x, (2, 3)), (2, 2, 5, 7),
       apart=True)
simple("adaptive_max_pool3d", lambda t, F, x: F.adaptive_max_pool3d(x, 2), (1, 2, 3, 4, 3),
       apart=True)
simple("lp_pool1d", lambda t, F, x: F.lp_pool1d(x, 2, 2), (2, 2, 6))
simple("lp_pool2d", lambda t, F, x: F.lp_pool2d(x, 3, (2, 1)), (1, 2, 4, 4), low=0.1, high=2)
simple("lp_pool3d", lambda t, F, x: F.lp_pool3d(x, 2, 2), (1, 1, 4, 4, 4))


@case("fractional_max_pool2d")
def _(torch, make):
    x, samples = make(2, 2, 7, 7, apart=True), make(2, 2, 2, low=0, high=1, grad=False)
    return torch.nn.functional.fractional_max_pool2d(x, 2, 3, _random_samples=samples)


@case("fractional_max_pool3d")
def _(torch, make):
    x, samples = make(1, 2, 5, 5, 5, apart=True), make(1, 2, 3, low=0, high=1, grad=False)
    return torch.nn.functional.fractional_max_pool3d(x, 2, 3, _random_samples=samples)


@case("max_unpool2d")
def _(torch, make):
    F = torch.nn.functional
    values, indices = F.max_pool2d(make(2, 2, 4, 6, apart=True), 2, return_indices=True)
    return F.max_unpool2d(values * values, indices, 2)


@case("max_unpool1d")
def _(torch, make):
    F = torch.nn.functional
    values, indices = F.max_pool1d(make(2, 2, 8, apart=True), 2, return_indices=True)
    return F.max_unpool1d(values, indices, 2, output_size=(9,))


@case("max_unpool3d")
def _(torch, make):
    F = torch.nn.functional
    values, indices = F.max_pool3d(make(1, 1, 4, 4, 4, apart=True), 2, return_indices=True)
    return F.max_unpool3d(values, indices, 2)


# ---- normalisation -------------------------------------------------------------------------------

simple("batch_norm_train", lambda t, F, x, w, b: F.batch_norm(x, None, None, w, b, True),
       (4, 3, 2), (3,), (3,))
simple("batch_norm_plain", lambda t, F, x: F.batch_norm(x, None, None, training=True), (5, 3))


@case("batch_norm_eval")
def _(torch, make):
    mean, var = make(3, grad=False), make(3, low=0.5, high=2, grad=False)
    return torch.nn.functional.batch_norm(make(2, 3, 2, 2), mean, var, make(3), make(3))


@case("batch_norm_running")
def _(torch, make):
    mean, var = make(3, grad=False), make(3, low=0.5, high=2, grad=False)
    y = torch.nn.functional.batch_norm(make(4, 3), mean, var, training=True, momentum=0.3)
    return torch.cat([y, mean[None], var[None]])


@case("instance_norm_running")
def _(torch, make):
    mean, var = make(3, grad=False), make(3, low=0.5, high=2, grad=False)
    y = torch.nn.functional.instance_norm(make(2, 3, 4), mean, var, make(3), make(3), momentum=0.3)
    return torch.cat([y.sum(2), mean[None], var[None]])


simple("layer_norm", lambda t, F, x, w, b: F.layer_norm(x, (4,), w, b), (2, 3, 4), (4,), (4,))
simple("layer_norm_two", lambda t, F, x: F.layer_norm(x, (3, 4)), (2, 3, 4))
simple("group_norm", lambda t, F, x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,))
simple("group_norm_plain", lambda t, F, x: F.group_norm(x, 2), (2, 4, 2, 2))
simple("instance_norm", lambda t, F, x, w, b: F.instance_norm(x, None, None, w, b), (2, 3, 5), (3,),
       (3,))
simple("rms_norm", lambda t, F, x, w: F.rms_norm(x, (4,), w), (2, 3, 4), (4,))
simple("rms_norm_eps", lambda t, F, x: F.rms_norm(x, (3, 4), eps=0.1), (2, 3, 4))
simple("local_response_norm", lambda t, F, x: F.local_response_norm(x, 3, 0.5), (2, 4, 3))
simple("local_response_norm_4d", lambda t, F, x: F.local_response_norm(x, 2, 0.5), (2, 4, 2, 2))
simple("normalize", lambda t, F, x: F.normalize(x), (2, 3))
simple("normalize_p", lambda t, F, x: F.normalize(x, 3, 0), (2, 3))

WEIGHT = [0.5, 2.0, 1.0, 0.25]

# ---- losses --------------------------------------------------------------------------------------

for _reduction in ("mean", "sum", "none"):
    def _pair(name, call, target=None, _r=_reduction):
        @case(f"{name}_{_r}")
        def _(torch, make):
            x = make(3, 4) if target != "unit" else make(3, 4, low=0.05, high=0.95)
            kind = {"unit": {"low": 0.05, "high": 0.95}, "positive": {"low": 0.1, "high": 3}}
            y = make(3, 4, **kind.get(target, {}))
            return call(torch, torch.nn.functional, x, y, _r)

    _pair("mse_loss", lambda t, F, x, y, r: F.mse_loss(x, y, reduction=r))
    _pair("mse_loss_weight", lambda t, F, x, y, r: F.mse_loss(x, y, reduction=r, weight=y.abs()))
    _pair("l1_loss", lambda t, F, x, y, r: F.l1_loss(x, y, reduction=r))
    _pair("smooth_l1_loss", lambda t, F, x, y, r: F.smooth_l1_loss(x, y, reduction=r, beta=0.7))
    _pair("huber_loss", lambda t, F, x, y, r: F.huber_loss(x, y, reduction=r, delta=0.7))
    _pair("bce", lambda t, F, x, y, r: F.binary_cross_entropy(x, y, reduction=r), "unit")
    _pair("bce_logits", lambda t, F, x, y, r: F.binary_cross_entropy_with_logits(
        x, y, reduction=r), "positive")
    _pair("kl_div", lambda t, F, x, y, r: F.kl_div(x, y, reduction=r), "positive")
    _pair("kl_div_log", lambda t, F, x, y, r: F.kl_div(x, y, reduction=r, log_target=True))
    _pair("poisson", lambda t, F, x, y, r: F.poisson_nll_loss(x, y, reduction=r), "positive")
    _pair("poisson_full", lambda t, F, x, y, r: F.poisson_nll_loss(
        x.abs(), y, False, True, reduction=r), "positive")
    _pair("gaussian", lambda t, F, x, y, r: F.gaussian_nll_loss(x, y * 2, y, True, reduction=r),
          "positive")
    _pair("multilabel_soft_margin", lambda t, F, x, y, r: F.multilabel_soft_margin_loss(
        x, y, reduction=r))
    _pair("pairwise_triplet", lambda t, F, x, y, r: F.triplet_margin_loss(
        x, y, x * y, swap=True, reduction=r))
    _pair("triplet_distance", lambda t, F, x, y, r: F.triplet_margin_with_distance_loss(
        x, y, x * y, distance_function=lambda a, b: (a - b).abs().sum(-1), reduction=r))

    def _signed(name, call, _r=_reduction):
        @case(f"{name}_{_r}")
        def _(torch, make):
            signs = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
            return call(torch.nn.functional, make(3, 4), make(3, 4), signs, _r)

    _signed("soft_margin", lambda F, x, y, s, r: F.soft_margin_loss(
        x, s[:, None].expand(3, 4), reduction=r))
    _signed("hinge_embedding", lambda F, x, y, s, r: F.hinge_embedding_loss(
        x, s[:, None], 0.9, reduction=r))
    _signed("cosine_embedding", lambda F, x, y, s, r: F.cosine_embedding_loss(
        x, y, s, 0.1, reduction=r))
    _signed("margin_ranking", lambda F, x, y, s, r: F.margin_ranking_loss(
        x[:, 0], y[:, 0], s, 0.2, reduction=r))

    def _classes(name, call, shape=(3, 4), _r=_reduction):
        @case(f"{name}_{_r}")
        def _(torch, make):
            x = make(*shape)
            target = make.integers(shape[1], shape[0], *shape[2:])
            return call(torch, torch.nn.functional, x, target, _r)

    _classes("cross_entropy", lambda t, F, x, y, r: F.cross_entropy(x, y, reduction=r))
    _classes("cross_entropy_smooth", lambda t, F, x, y, r: F.cross_entropy(
        x, y, reduction=r, label_smoothing=0.2))
    _classes("cross_entropy_all", lambda t, F, x, y, r: F.cross_entropy(
        x, y, t.tensor(WEIGHT, dtype=x.dtype), ignore_index=2, reduction=r, label_smoothing=0.1))
    _classes("cross_entropy_images", lambda t, F, x, y, r: F.cross_entropy(
        x, y, t.tensor(WEIGHT, dtype=x.dtype), ignore_index=1, reduction=r, label_smoothing=0.1),
        (2, 4, 2, 3))
    _classes("nll_loss", lambda t, F, x, y, r: F.nll_loss(
        x, y, t.tensor(WEIGHT, dtype=x.dtype), reduction=r, ignore_index=1))
    _classes("nll_loss_images", lambda t, F, x, y, r: F.nll_loss(x, y, reduction=r), (2, 4, 2, 2))
    _classes("multi_margin", lambda t, F, x, y, r: F.multi_margin_loss(
        x, y, 2, 0.8, t.tensor(WEIGHT, dtype=x.dtype), reduction=r))
    _pair("cross_entropy_soft", lambda t, F, x, y, r: F.cross_entropy(
        x, y, t.tensor(WEIGHT, dtype=x.dtype), reduction=r, label_smoothing=0.1), "positive")

    @case(f"multilabel_margin_{_reduction}")
    def _(torch, make, _r=_reduction):
        y = torch.tensor([[1, 2, -1, 0], [3, -1, 1, 2]])
        return torch.nn.functional.multilabel_margin_loss(make(2, 4), y, reduction=_r)

    @case(f"ctc_{_reduction}")
    def _(torch, make, _r=_reduction):
        F = torch.nn.functional
        logs = F.log_softmax(make(6, 3, 4), 2)
        targets = torch.tensor([[1, 1, 2], [3, 2, 0], [1, 0, 0]])
        return F.ctc_loss(logs, targets, [6, 5, 4], [3, 2, 1], reduction=_r)


@case("bce_logits_weights")
def _(torch, make):
    y = make(3, 4, low=0, high=1, grad=False)
    return torch.nn.functional.binary_cross_entropy_with_logits(
        make(3, 4), y, make(4, grad=False), pos_weight=make(4, low=0.5, high=2, grad=False))


@case("bce_weight")
def _(torch, make):
    return torch.nn.functional.binary_cross_entropy(
        make(3, 4, low=0.05, high=0.95), make(3, 4, low=0, high=1, grad=False), make(4, grad=False))


simple("cross_entropy_one", lambda t, F, x: F.cross_entropy(x, t.tensor(2)), (4,))
simple("kl_div_batchmean", lambda t, F, x, y: F.kl_div(x, y.abs(), reduction="batchmean"), (3, 4),
       (3, 4))

# ---- embedding -----------------------------------------------------------------------------------


@case("embedding")
def _(torch, make):
    return torch.nn.functional.embedding(make.integers(5, 2, 3), make(5, 3), padding_idx=1)


@case("embedding_frequency")
def _(torch, make):
    return torch.nn.functional.embedding(make.integers(3, 8), make(4, 2), scale_grad_by_freq=True)


for _mode in ("sum", "mean", "max"):
    @case(f"embedding_bag_{_mode}")
    def _(torch, make, mode=_mode):
        offsets = torch.tensor([0, 2, 2, 5])
        return torch.nn.functional.embedding_bag(
            make.integers(6, 7), make(6, 3, apart=True), offsets, mode=mode, padding_idx=2)


@case("embedding_bag_weights")
def _(torch, make):
    return torch.nn.functional.embedding_bag(make.integers(6, 3, 2), make(6, 3), mode="sum",
                                             per_sample_weights=make(3, 2))


# ---- attention -----------------------------------------------------------------------------------

def _attention(t, F, q, k, v, **options):
    return F.scaled_dot_product_attention(q, k, v, **options)


simple("attention", _attention, (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3))
simple("attention_causal", lambda *a: _attention(*a, is_causal=True), (1, 2, 3, 4), (1, 2, 3, 4),
       (1, 2, 3, 4))
simple("attention_mask", lambda t, F, q, k, v, m: _attention(t, F, q, k, v, attn_mask=m, scale=0.3),
       (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), (3, 5))
simple("attention_bool", lambda t, F, q, k, v: _attention(
    t, F, q, k, v, attn_mask=t.tensor([[True, False, True], [False, True, True]])), (2, 4), (3, 4),
    (3, 4))
simple("attention_groups", lambda t, F, q, k, v: _attention(t, F, q, k, v, enable_gqa=True),
       (1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2))


@case("multi_head_attention")
def _(torch, make):
    x, y = make(3, 2, 4), make(5, 2, 4)
    out, weights = torch.nn.functional.multi_head_attention_forward(
        x, y, y, 4, 2, make(12, 4), make(12), make(1, 1, 4), make(1, 1, 4), True, 0.0, make(4, 4),
        make(4), key_padding_mask=torch.tensor([[False] * 5, [False] * 4 + [True]]))
    return torch.cat([out.flatten(), weights.flatten()])


@case("multi_head_attention_causal")
def _(torch, make):
    x = make(3, 4)
    mask = torch.ones(3, 3, dtype=torch.bool).triu(1)
    return torch.nn.functional.multi_head_attention_forward(
        x, x, x, 4, 2, make(12, 4), None, None, None, False, 0.0, make(4, 4), None,
        need_weights=False, attn_mask=mask, is_causal=True)[0]


# ---- padding and resampling ----------------------------------------------------------------------

simple("pad_constant", lambda t, F, x: F.pad(x, (1, 2, -1, 1), value=0.5), (2, 3, 3))
for _mode in ("reflect", "replicate", "circular"):
    simple(f"pad_{_mode}1d", lambda t, F, x, m=_mode: F.pad(x, (2, 1), m), (2, 2, 4))
    simple(f"pad_{_mode}2d", lambda t, F, x, m=_mode: F.pad(x, (1, 2, 2, 0), m), (1, 2, 3, 3))
    simple(f"pad_{_mode}3d", lambda t, F, x, m=_mode: F.pad(x, (1, 1, 0, 1, 1, 0), m),
           (1, 1, 2, 2, 2))
simple("pad_circular_negative", lambda t, F, x: F.pad(x, (-1, 2), "circular"), (2, 2, 4))
for _mode, _shape in (("nearest", (1, 2, 4)), ("linear", (1, 2, 4)), ("nearest", (1, 2, 3, 4)),
                      ("nearest-exact", (1, 2, 3, 4)), ("bilinear", (1, 2, 3, 4)),
                      ("bicubic", (1, 1, 4, 4)), ("area", (1, 2, 4, 3)),
                      ("trilinear", (1, 1, 2, 3, 2)), ("nearest", (1, 1, 2, 3, 2))):
    simple(f"interpolate_{_mode}_{len(_shape)}", lambda t, F, x, m=_mode: F.interpolate(
        x, scale_factor=1.7, mode=m), _shape)
    simple(f"interpolate_{_mode}_{len(_shape)}_size", lambda t, F, x, m=_mode: F.interpolate(
        x, size=5, mode=m), _shape)
for _mode in ("bilinear", "bicubic"):
    simple(f"interpolate_{_mode}_corners", lambda t, F, x, m=_mode: F.interpolate(
        x, size=(3, 7), mode=m, align_corners=True), (1, 1, 5, 4))
    simple(f"interpolate_{_mode}_antialias", lambda t, F, x, m=_mode: F.interpolate(
        x, size=(3, 2), mode=m, antialias=True), (1, 1, 7, 6))
for _mode in ("bilinear", "nearest", "bicubic"):
    for _padding in ("zeros", "border", "reflection"):
        for _align in (False, True):
            simple(f"grid_sample_{_mode}_{_padding}_{_align}",
                   lambda t, F, x, g, m=_mode, p=_padding, a=_align: F.grid_sample(
                       x, g, m, p, a), (1, 2, 3, 4), (1, 2, 3, 2))
simple("grid_sample_3d", lambda t, F, x, g: F.grid_sample(x, g, align_corners=False),
       (1, 2, 3, 4, 3), (1, 2, 2, 2, 3), low=-1, high=1)
simple("affine_grid", lambda t, F, x: F.affine_grid(x, [2, 1, 3, 4], False), (2, 2, 3))
simple("affine_grid_3d", lambda t, F, x: F.affine_grid(x, [1, 1, 2, 3, 2], True), (1, 3, 4))
simple("pixel_shuffle", lambda t, F, x: F.pixel_shuffle(x, 2), (1, 8, 2, 3))
simple("pixel_unshuffle", lambda t, F, x: F.pixel_unshuffle(x, 2), (1, 2, 4, 6))
simple("channel_shuffle", lambda t, F, x: F.channel_shuffle(x, 3), (1, 6, 2))

# ---- distances -----------------------------------------------------------------------------------

simple("cosine_similarity", lambda t, F, x, y: F.cosine_similarity(x, y), (3, 4), (3, 4))
simple("pairwise_distance", lambda t, F, x, y: F.pairwise_distance(x, y, 3), (3, 4), (3, 4))
for _p in (0.5, 1.0, 2.0, 3.0, float("inf")):
    simple(f"cdist_{_p}", lambda t, F, x, y, p=_p: t.cdist(x, y, p), (2, 3, 4), (2, 5, 4))
    simple(f"pdist_{_p}", lambda t, F, x, p=_p: F.pdist(x, p), (4, 3))
simple("cdist_broadcast", lambda t, F, x, y: t.cdist(x, y), (3, 4), (2, 5, 4))

# ---- recurrent -----------------------------------------------------------------------------------


def _recurrent(mode, gates, options):
    @case(f"{mode}{''.join('_' + o for o in options)}")
    def _(torch, make):
        biases, two, both = "bias" in options, "two" in options, "both" in options
        directions, layers = 1 + both, 1 + two
        proj = 2 if "proj" in options else 0
        out = proj or 3
        params = []
        for layer in range(layers):
            for _ in range(directions):
                params += [make(gates * 3, 2 if layer == 0 else out * directions),
                           make(gates * 3, out)]
                if biases:
                    params += [make(gates * 3), make(gates * 3)]
                if proj:
                    params.append(make(proj, 3))
        n = layers * directions
        h = make(n, 2, out)
        state = (h, make(n, 2, 3)) if mode == "lstm" else h
        if "packed" in options:
            found = getattr(torch, mode)(make(6, 2), torch.tensor([2, 2, 1, 1]), state, params,
                                         biases, layers, 0.0, False, both)
        else:
            found = getattr(torch, mode)(make(4, 2, 2), state, params, biases, layers, 0.0, False,
                                         both, "first" in options)
        return torch.cat([f.flatten() for f in found])


for _mode, _gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
    _recurrent(_mode, _gates, ("bias",))
    _recurrent(_mode, _gates, ("two", "both"))
    _recurrent(_mode, _gates, ("bias", "packed", "both"))
_recurrent("lstm", 4, ("bias", "proj"))


@case("lstm_first")
def _(torch, make):
    state = (make(1, 4, 3), make(1, 4, 3))
    found = torch.lstm(make(4, 2, 2), state, [make(12, 2), make(12, 3)], False, 1, 0.0, False,
                       False, True)
    return torch.cat([f.flatten() for f in found])


for _mode, _gates in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
    @case(f"{_mode}_cell")
    def _(torch, make, mode=_mode, gates=_gates):
        h = (make(2, 3), make(2, 3)) if mode == "lstm" else make(2, 3)
        found = getattr(torch, f"{mode}_cell")(
            make(2, 2), h, make(gates * 3, 2), make(gates * 3, 3), make(gates * 3), make(gates * 3))
        return torch.cat(found) if mode == "lstm" else found
