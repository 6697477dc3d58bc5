"""The table of layers that the tests and the recording script share.

A case names a layer, says how to make it, and describes its inputs: a tuple of sizes is a float
tensor, `ints(high, *sizes)` an integer one, anything else is passed as it is. Everything is written
for a module `t` with torch's names, so that the same table runs on PyTorch and on flambeau.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ints:
    """Integers from 0 (or `low`) up to `high`, which is left out."""

    high: int
    sizes: tuple
    low: int = 0


@dataclass(frozen=True)
class floats:
    """Uniform floats between two bounds; without a gradient if `grad` is False."""

    low: float
    high: float
    sizes: tuple
    grad: bool = True


@dataclass
class Case:
    name: str
    make: Callable[[Any], Any]
    inputs: tuple
    # Run in evaluation mode, because training draws random numbers.
    eval: bool = False
    call: dict = field(default_factory=dict)


def make_inputs(t, case, dtype=np.float32):
    """The inputs of a case, the same numbers everywhere."""
    draw = np.random.RandomState(zlib.crc32(case.name.encode()))

    def make(spec):
        if isinstance(spec, ints):
            return t.tensor(draw.randint(spec.low, spec.high, spec.sizes).astype(np.int64))
        if isinstance(spec, floats):
            array = draw.uniform(spec.low, spec.high, spec.sizes).astype(dtype)
            return t.tensor(array).requires_grad_(spec.grad)
        if isinstance(spec, tuple) and all(isinstance(n, int) for n in spec):
            return t.tensor(draw.standard_normal(spec).astype(dtype)).requires_grad_()
        if isinstance(spec, list):
            return [make(s) for s in spec]
        if callable(spec):
            return spec(t)
        return spec

    return [make(spec) for spec in case.inputs]


def tensors_of(t, value):
    """All tensors in a result, in order."""
    if isinstance(value, t.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [tensor for part in value for tensor in tensors_of(t, part)]
    return []


def run(t, case):
    """Make a layer with seed 0, run it forward and backward; everything it gave, as arrays."""
    t.manual_seed(0)
    module = case.make(t)
    initial = {k: v.detach().clone() for k, v in module.state_dict().items()}
    if case.eval:
        module.eval()
    inputs = make_inputs(t, case)
    outputs = tensors_of(t, module(*inputs, **case.call))
    result = {f"init.{k}": v.numpy() for k, v in initial.items()}
    result |= {f"out.{i}": out.detach().numpy() for i, out in enumerate(outputs)}
    # A weighted sum, so that every element of a gradient counts.
    loss = sum(
        (out * weights(t, out)).sum() for out in outputs if out.requires_grad
    )
    if isinstance(loss, t.Tensor):
        loss.backward()
        for i, x in enumerate(tensors_of(t, inputs)):
            if x.grad is not None:
                result[f"grad.{i}"] = x.grad.numpy()
        for name, param in module.named_parameters():
            if param.grad is not None:
                grad = param.grad.to_dense() if param.grad.is_sparse else param.grad
                result[f"grad.{name}"] = grad.numpy()
    for name, buffer in module.named_buffers():
        result[f"after.{name}"] = buffer.numpy()
    return module, result


def checksum(array):
    """Shape, sum and sum of absolute values: enough to tell one stream of draws from another."""
    values = array.astype(np.float64)
    return [list(array.shape), float(values.sum()), float(np.abs(values).sum())]


def weights(t, out):
    values = np.cos(np.arange(math.prod(out.shape), dtype=np.float64)).astype(np.float32)
    return t.tensor(values).reshape(out.shape).to(out.dtype)


def case(name, make, *inputs, **options):
    return Case(name, make, inputs, **options)


def _activations():
    plain = {
        "ReLU": "", "ReLU6": "", "SiLU": "", "Mish": "", "SELU": "", "Hardsigmoid": "",
        "Hardswish": "", "Sigmoid": "", "Tanh": "", "LogSigmoid": "", "Softsign": "",
        "Tanhshrink": "", "Softplus": "beta=2.0, threshold=3.0", "Softshrink": "0.3",
        "Hardshrink": "0.3", "ELU": "1.5", "CELU": "1.5", "LeakyReLU": "0.2",
        "Hardtanh": "-0.5, 0.7", "Threshold": "0.1, 20", "GELU": "", "GLU": "1",
        "Softmax": "dim=1", "Softmin": "dim=1", "LogSoftmax": "dim=-1",
        "PReLU": "4", "RReLU": "",
    }  # fmt: skip
    for name, options in plain.items():
        yield case(
            name,
            lambda t, name=name, options=options: eval(f"t.nn.{name}({options})", {"t": t}),
            (3, 4),
            eval=name == "RReLU",
        )
    yield case("GELU-tanh", lambda t: t.nn.GELU("tanh"), (3, 4))
    yield case("Softmax2d", lambda t: t.nn.Softmax2d(), (2, 3, 2, 2))
    yield case("ReLU-inplace-repr", lambda t: t.nn.ReLU(), (2,))


def _convolutions():
    nn = lambda t: t.nn
    image = {1: (2, 4, 7), 2: (2, 4, 6, 5), 3: (1, 4, 4, 5, 3)}
    for n, shape in image.items():
        yield case(f"Conv{n}d", lambda t, n=n: getattr(nn(t), f"Conv{n}d")(4, 6, 3), shape)
        yield case(
            f"Conv{n}d-options",
            lambda t, n=n: getattr(nn(t), f"Conv{n}d")(
                4, 6, 2, stride=2, padding=1, dilation=2, groups=2, bias=False
            ),
            shape,
        )
        yield case(
            f"Conv{n}d-same",
            lambda t, n=n: getattr(nn(t), f"Conv{n}d")(4, 2, 2, padding="same"),
            shape,
        )
        yield case(f"Conv{n}d-unbatched", lambda t, n=n: getattr(nn(t), f"Conv{n}d")(4, 2, 2),
                   shape[1:])  # fmt: skip
        yield case(
            f"ConvTranspose{n}d", lambda t, n=n: getattr(nn(t), f"ConvTranspose{n}d")(4, 3, 2),
            shape,
        )  # fmt: skip
        yield case(
            f"ConvTranspose{n}d-options",
            lambda t, n=n: getattr(nn(t), f"ConvTranspose{n}d")(
                4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=2
            ),
            shape,
        )
        yield case(
            f"ConvTranspose{n}d-output_size",
            lambda t, n=n: getattr(nn(t), f"ConvTranspose{n}d")(4, 2, 3, stride=2),
            shape,
            call={"output_size": [2 * size + 2 for size in shape[2:]]},
        )
        yield case(f"LazyConv{n}d", lambda t, n=n, s=shape: _warmed(t, f"LazyConv{n}d", (3, 2), s),
                   shape)  # fmt: skip
        yield case(
            f"LazyConvTranspose{n}d",
            lambda t, n=n, shape=shape: _warmed(t, f"LazyConvTranspose{n}d", (3, 2), shape),
            shape,
        )
    for mode in ("reflect", "replicate", "circular"):
        yield case(
            f"Conv2d-{mode}",
            lambda t, mode=mode: t.nn.Conv2d(4, 2, 3, padding=(2, 1), padding_mode=mode),
            image[2],
        )


def _warmed(t, name, args, shape):
    """A lazy layer after its first call."""
    layer = getattr(t.nn, name)(*args)
    layer(t.zeros(shape))
    return layer


def _pooling():
    image = {1: (2, 3, 8), 2: (2, 3, 6, 7), 3: (1, 2, 5, 4, 6)}
    for n, shape in image.items():
        make = lambda t, name, *a, n=n, **k: getattr(t.nn, f"{name}{n}d")(*a, **k)
        yield case(f"MaxPool{n}d", lambda t, make=make: make(t, "MaxPool", 2), shape)
        yield case(
            f"MaxPool{n}d-options",
            lambda t, make=make: make(
                t, "MaxPool", 2, stride=1, padding=1, dilation=2, return_indices=True,
                ceil_mode=True,
            ),
            shape,
        )  # fmt: skip
        yield case(f"AvgPool{n}d", lambda t, make=make: make(t, "AvgPool", 2), shape)
        yield case(
            f"AvgPool{n}d-options",
            lambda t, make=make: make(
                t, "AvgPool", 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False
            ),
            shape,
        )
        yield case(f"LPPool{n}d", lambda t, make=make: make(t, "LPPool", 2, 2), shape)
        yield case(
            f"AdaptiveAvgPool{n}d", lambda t, make=make: make(t, "AdaptiveAvgPool", 3), shape
        )
        yield case(
            f"AdaptiveMaxPool{n}d",
            lambda t, make=make: make(t, "AdaptiveMaxPool", 3, return_indices=True),
            shape,
        )
        yield case(
            f"MaxUnpool{n}d",
            lambda t, n=n: _unpooled(t, n),
            shape,
        )
    yield case("AvgPool2d-divisor", lambda t: t.nn.AvgPool2d(2, divisor_override=3), image[2])
    yield case("AdaptiveAvgPool2d-None", lambda t: t.nn.AdaptiveAvgPool2d((None, 2)), image[2])
    yield case(
        "FractionalMaxPool2d",
        lambda t: t.nn.FractionalMaxPool2d(
            2, output_size=(3, 4), _random_samples=t.full((2, 3, 2), 0.4)
        ),
        image[2],
    )
    yield case(
        "FractionalMaxPool3d",
        lambda t: t.nn.FractionalMaxPool3d(
            2, output_ratio=0.5, return_indices=True, _random_samples=t.full((1, 2, 3), 0.4)
        ),
        image[3],
    )


def _unpooled(t, n):
    """Max pooling and back, as one module."""

    class RoundTrip(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = getattr(t.nn, f"MaxPool{n}d")(2, return_indices=True)
            self.unpool = getattr(t.nn, f"MaxUnpool{n}d")(2)

        def forward(self, x):
            return self.unpool(*self.pool(x), output_size=x.size())

    return RoundTrip()


def _padding():
    image = {1: (2, 3, 5), 2: (2, 3, 4, 5), 3: (1, 2, 4, 5, 6)}
    for n, shape in image.items():
        sides = tuple([1, 2, 0, 1, 2, 1][: 2 * n])
        for kind in ("Zero", "Reflection", "Replication", "Circular"):
            yield case(
                f"{kind}Pad{n}d",
                lambda t, kind=kind, n=n, s=sides: getattr(t.nn, f"{kind}Pad{n}d")(s),
                shape,
            )
        yield case(
            f"ConstantPad{n}d",
            lambda t, n=n, s=sides: getattr(t.nn, f"ConstantPad{n}d")(s, 1.5),
            shape,
        )


def _normalization():
    image = {1: (4, 6, 5), 2: (3, 6, 4, 2), 3: (2, 6, 2, 3, 2)}
    for n, shape in image.items():
        for kind in ("BatchNorm", "InstanceNorm"):
            name = f"{kind}{n}d"
            yield case(name, lambda t, name=name: getattr(t.nn, name)(6), shape)
            yield case(
                f"{name}-options",
                lambda t, name=name: getattr(t.nn, name)(
                    6, eps=1e-3, momentum=0.3, affine=True, track_running_stats=True
                ),
                shape,
            )
            yield case(
                f"{name}-eval",
                lambda t, name=name: getattr(t.nn, name)(6, affine=True, bias=False),
                shape,
                eval=True,
            )
            yield case(
                f"Lazy{name}", lambda t, name=name, s=shape: _warmed(t, f"Lazy{name}", (), s), shape
            )
    yield case("BatchNorm1d-2D", lambda t: t.nn.BatchNorm1d(6, momentum=None), (5, 6))
    yield case("BatchNorm2d-not-affine", lambda t: t.nn.BatchNorm2d(6, affine=False), image[2])
    yield case(
        "BatchNorm2d-no-stats", lambda t: t.nn.BatchNorm2d(6, track_running_stats=False), image[2]
    )
    yield case("InstanceNorm2d-unbatched", lambda t: t.nn.InstanceNorm2d(6), image[2][1:])
    yield case("SyncBatchNorm", lambda t: t.nn.SyncBatchNorm(6), image[2], eval=True)
    yield case("LayerNorm", lambda t: t.nn.LayerNorm(5), image[1])
    yield case("LayerNorm-2D", lambda t: t.nn.LayerNorm((6, 5), eps=1e-3, bias=False), image[1])
    yield case("LayerNorm-plain", lambda t: t.nn.LayerNorm(5, elementwise_affine=False), image[1])
    yield case("RMSNorm", lambda t: t.nn.RMSNorm(5), image[1])
    yield case("RMSNorm-options", lambda t: t.nn.RMSNorm([6, 5], 1e-3, False), image[1])
    yield case("GroupNorm", lambda t: t.nn.GroupNorm(3, 6), image[2])
    yield case("GroupNorm-plain", lambda t: t.nn.GroupNorm(2, 6, affine=False), image[1])
    yield case("GroupNorm-no-bias", lambda t: t.nn.GroupNorm(2, 6, bias=False), image[1])
    yield case("LocalResponseNorm", lambda t: t.nn.LocalResponseNorm(3, 0.1), image[2])
    yield case("CrossMapLRN2d", lambda t: t.nn.CrossMapLRN2d(3, 0.1), image[2])
    yield case("CrossMapLRN2d-even", lambda t: t.nn.CrossMapLRN2d(4, 0.1), image[2])


def _losses():
    two = ((3, 4), floats(-1, 1, (3, 4)))
    positive = ((3, 4), floats(0.1, 2, (3, 4)))
    signs = lambda *s: lambda t: t.tensor(
        np.sign(np.cos(np.arange(math.prod(s)) * 2.0)).astype(np.float32)
    ).reshape(s)
    classes = ((3, 5), ints(5, (3,)))
    weight = "weight=t.tensor([0.5, 1.0, 2.0, 0.1, 3.0])"
    table = [
        ("L1Loss", "", two),
        ("MSELoss", "", two),
        ("SmoothL1Loss", "beta=0.7", two),
        ("HuberLoss", "delta=0.7", two),
        ("PoissonNLLLoss", "full=True", positive),
        ("PoissonNLLLoss", "log_input=False", (floats(0.1, 2, (3, 4)), floats(0, 3, (3, 4)))),
        ("GaussianNLLLoss", "full=True", (*two, floats(0.2, 2, (3, 4)))),
        ("NLLLoss", "", classes),
        ("NLLLoss", weight, classes),
        ("NLLLoss", "ignore_index=1", ((2, 4, 3, 2), ints(4, (2, 3, 2)))),
        ("CrossEntropyLoss", "", classes),
        ("CrossEntropyLoss", weight + ", label_smoothing=0.2", classes),
        ("CrossEntropyLoss", "ignore_index=2", ((2, 4, 3), ints(4, (2, 3)))),
        ("CrossEntropyLoss", weight, ((3, 5), floats(0, 1, (3, 5)))),
        ("BCELoss", "", (floats(0.1, 0.9, (3, 4)), floats(0, 1, (3, 4), False))),
        ("BCEWithLogitsLoss", "pos_weight=t.tensor([1.0, 2.0, 0.5, 3.0])",
         ((3, 4), floats(0, 1, (3, 4), False))),
        ("KLDivLoss", "", ((3, 4), floats(0, 1, (3, 4)))),
        ("KLDivLoss", "log_target=True", two),
        ("SoftMarginLoss", "", ((3, 4), signs(3, 4))),
        ("HingeEmbeddingLoss", "margin=0.5", ((3, 4), signs(3, 4))),
        ("MultiLabelMarginLoss", "", ((2, 4), lambda t: t.tensor([[3, 0, -1, 1], [1, -1, 0, 0]]))),
        ("MultiLabelSoftMarginLoss", "", ((3, 4), floats(0, 1, (3, 4), False))),
        ("MultiMarginLoss", "p=2, margin=0.7, " + weight, classes),
        ("CosineEmbeddingLoss", "margin=0.1", ((3, 4), (3, 4), signs(3))),
        ("MarginRankingLoss", "margin=0.3", ((5,), (5,), signs(5))),
        ("TripletMarginLoss", "swap=True", ((3, 4), (3, 4), (3, 4))),
        ("TripletMarginWithDistanceLoss", "", ((3, 4), (3, 4), (3, 4))),
        ("LinearCrossEntropyLoss", "5, 6, bias=True", ((3, 5), ints(6, (3,)))),
    ]  # fmt: skip
    for i, (name, options, inputs) in enumerate(table):
        for reduction in ("mean", "sum", "none"):
            yield case(
                f"{name}-{i}-{reduction}",
                lambda t, name=name, o=options, r=reduction: eval(
                    f"t.nn.{name}({o}{', ' if o else ''}reduction={r!r})", {"t": t}
                ),
                *inputs,
            )
    yield case(
        "CTCLoss",
        lambda t: t.nn.Sequential(_Apply(t, lambda x: x.log_softmax(2)), _ctc(t)),
        (6, 2, 4),
    )
    yield case(
        "AdaptiveLogSoftmaxWithLoss",
        lambda t: t.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, head_bias=True),
        (4, 8),
        lambda t: t.tensor([0, 5, 11, 2]),
    )


def _Apply(t, function):
    class Apply(t.nn.Module):
        def forward(self, x):
            return function(x)

    return Apply()


def _ctc(t):
    class Loss(t.nn.Module):
        def forward(self, logp):
            targets = t.tensor([[1, 2, 2], [3, 1, 0]])
            return t.nn.CTCLoss()(logp, targets, t.tensor([6, 5]), t.tensor([3, 2]))

    return Loss()


def _recurrent():
    for name in ("RNN", "GRU", "LSTM"):
        make = lambda t, name=name, **k: getattr(t.nn, name)(3, 4, **k)
        yield case(name, make, (5, 2, 3))
        yield case(
            f"{name}-deep",
            lambda t, make=make: make(t, num_layers=2, bidirectional=True, batch_first=True),
            (2, 5, 3),
        )
        yield case(f"{name}-unbatched", lambda t, make=make: make(t, bias=False), (5, 3))
        state = (1, 2, 4)
        yield case(
            f"{name}-state", make, (5, 2, 3), [state, state] if name == "LSTM" else state
        )
        yield case(f"{name}Cell", lambda t, name=name: getattr(t.nn, name + "Cell")(3, 4), (2, 3))
        yield case(
            f"{name}-packed",
            lambda t, make=make: _packed(t, make(t, bidirectional=True)),
            (4, 3, 3),
        )
    yield case("RNN-relu", lambda t: t.nn.RNN(3, 4, nonlinearity="relu"), (5, 2, 3))
    yield case("RNNCell-relu", lambda t: t.nn.RNNCell(3, 4, nonlinearity="relu"), (2, 3), (2, 4))
    yield case("LSTM-projected", lambda t: t.nn.LSTM(3, 4, 2, proj_size=2), (5, 2, 3))


def _packed(t, layer):
    """A recurrent layer that packs its input, with lengths 2, 4 and 1."""
    rnn = t.nn.utils.rnn

    class Packed(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            packed = rnn.pack_padded_sequence(x, [2, 4, 1], enforce_sorted=False)
            output, state = self.layer(packed)
            return rnn.pad_packed_sequence(output), state

    return Packed()


def _attention():
    yield case(
        "MultiheadAttention", lambda t: t.nn.MultiheadAttention(4, 2), (3, 2, 4), (5, 2, 4),
        (5, 2, 4),
    )  # fmt: skip
    yield case(
        "MultiheadAttention-options",
        lambda t: t.nn.MultiheadAttention(
            4, 2, add_bias_kv=True, add_zero_attn=True, kdim=3, vdim=5, batch_first=True
        ),
        (2, 3, 4),
        (2, 6, 3),
        (2, 6, 5),
        call={"average_attn_weights": False},
    )
    layer = lambda t, kind, **k: getattr(t.nn, f"Transformer{kind}Layer")(
        4, 2, 8, dropout=0.0, **k
    )
    yield case("TransformerEncoderLayer", lambda t: layer(t, "Encoder"), (5, 2, 4))
    yield case(
        "TransformerEncoderLayer-options",
        lambda t: layer(t, "Encoder", activation="gelu", norm_first=True, batch_first=True),
        (2, 5, 4),
    )
    yield case("TransformerDecoderLayer", lambda t: layer(t, "Decoder"), (3, 2, 4), (5, 2, 4))
    yield case(
        "TransformerEncoder",
        lambda t: t.nn.TransformerEncoder(
            layer(t, "Encoder"), 2, t.nn.LayerNorm(4), enable_nested_tensor=False
        ),
        (5, 2, 4),
    )
    yield case(
        "TransformerDecoder",
        lambda t: t.nn.TransformerDecoder(layer(t, "Decoder"), 2),
        (3, 2, 4),
        (5, 2, 4),
        call={"tgt_is_causal": False},
    )
    yield case(
        "Transformer",
        lambda t: t.nn.Transformer(4, 2, 1, 1, 8, dropout=0.0),
        (5, 2, 4),
        (3, 2, 4),
    )


def _others():
    yield case("Identity", lambda t: t.nn.Identity(1, a=2), (2, 3))
    yield case("Linear", lambda t: t.nn.Linear(3, 4), (2, 5, 3))
    yield case("Linear-no-bias", lambda t: t.nn.Linear(3, 4, bias=False), (3,))
    yield case("LazyLinear", lambda t: _warmed(t, "LazyLinear", (4,), (2, 3)), (2, 3))
    yield case("Bilinear", lambda t: t.nn.Bilinear(3, 4, 2), (5, 3), (5, 4))
    yield case("Embedding", lambda t: t.nn.Embedding(7, 3, padding_idx=2), ints(7, (2, 4)))
    yield case(
        "Embedding-max_norm", lambda t: t.nn.Embedding(7, 3, max_norm=1.0, norm_type=1.0),
        ints(7, (2, 4)),
    )  # fmt: skip
    for mode in ("sum", "mean", "max"):
        yield case(
            f"EmbeddingBag-{mode}", lambda t, mode=mode: t.nn.EmbeddingBag(7, 3, mode=mode),
            ints(7, (6,)), lambda t: t.tensor([0, 2, 3]),
        )  # fmt: skip
    yield case("EmbeddingBag-2D", lambda t: t.nn.EmbeddingBag(7, 3, padding_idx=1), ints(7, (2, 4)))
    yield case("Flatten", lambda t: t.nn.Flatten(), (2, 3, 4))
    yield case("Unflatten", lambda t: t.nn.Unflatten(1, (2, 3)), (2, 6))
    yield case("Unfold", lambda t: t.nn.Unfold(2, padding=1, stride=2), (2, 3, 4, 5))
    yield case("Fold", lambda t: t.nn.Fold((4, 5), 2, stride=1), (2, 12, 12))
    yield case("PixelShuffle", lambda t: t.nn.PixelShuffle(2), (2, 8, 3, 2))
    yield case("PixelUnshuffle", lambda t: t.nn.PixelUnshuffle(2), (2, 2, 4, 6))
    yield case("ChannelShuffle", lambda t: t.nn.ChannelShuffle(2), (2, 6, 3))
    yield case("CosineSimilarity", lambda t: t.nn.CosineSimilarity(), (3, 4), (3, 4))
    yield case("PairwiseDistance", lambda t: t.nn.PairwiseDistance(3.0, keepdim=True), (3, 4),
               (3, 4))  # fmt: skip
    yield case("Upsample", lambda t: t.nn.Upsample(scale_factor=2), (1, 2, 3, 4))
    yield case("Upsample-size", lambda t: t.nn.Upsample((5, 7), mode="bilinear"), (1, 2, 3, 4))
    yield case(
        "Upsample-bicubic", lambda t: t.nn.Upsample(scale_factor=(1.5, 2.0), mode="bicubic"),
        (1, 2, 4, 4),
    )  # fmt: skip
    yield case(
        "UpsamplingNearest2d", lambda t: t.nn.UpsamplingNearest2d(scale_factor=3), (1, 1, 2, 2)
    )
    yield case("UpsamplingBilinear2d", lambda t: t.nn.UpsamplingBilinear2d((3, 5)), (1, 2, 2, 3))
    yield case("Dropout", lambda t: t.nn.Dropout(0.4), (6, 7))
    yield case("Dropout1d", lambda t: t.nn.Dropout1d(0.4), (2, 6, 3))
    yield case("Dropout2d", lambda t: t.nn.Dropout2d(0.4), (2, 6, 2, 2))
    yield case("Dropout3d", lambda t: t.nn.Dropout3d(0.4), (2, 6, 2, 1, 2))
    yield case("AlphaDropout", lambda t: t.nn.AlphaDropout(0.4), (6, 7))
    yield case("FeatureAlphaDropout", lambda t: t.nn.FeatureAlphaDropout(0.4), (2, 6, 3))
    yield case(
        "Sequential",
        lambda t: t.nn.Sequential(
            t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Sequential(t.nn.Linear(4, 2), t.nn.ReLU())
        ),
        (5, 3),
    )


CASES = [
    *_others(),
    *_activations(),
    *_convolutions(),
    *_pooling(),
    *_padding(),
    *_normalization(),
    *_losses(),
    *_recurrent(),
    *_attention(),
]
