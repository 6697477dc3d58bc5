"""Record what PyTorch computes for tests/kernels/network/test_network_recorded.py.

To be run with PyTorch. Writes network_kernels.npz beside this file; keys are `case/array`.
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

torch.manual_seed(0)
arrays = {}


def record(case, **tensors):
    for name, tensor in tensors.items():
        arrays[f"{case}/{name}"] = tensor.detach().numpy()


def grads(y, g, *inputs):
    return torch.autograd.grad(y, inputs, g)


def leaf(*shape):
    return torch.randn(shape).requires_grad_()


x, w = leaf(2, 4, 7, 6), leaf(6, 2, 3, 2)
y = F.conv2d(x, w, None, (2, 1), (1, 1), (1, 2), 2)
g = torch.randn_like(y)
gx, gw = grads(y, g, x, w)
record("conv2d", x=x, w=w, y=y, g=g, gx=gx, gw=gw)

x, w = leaf(2, 4, 5), leaf(4, 3, 3)
y = F.conv_transpose1d(x, w, None, 2, 1, 1)
g = torch.randn_like(y)
gx, gw = grads(y, g, x, w)
record("conv_transpose1d", x=x, w=w, y=y, g=g, gx=gx, gw=gw)

x = torch.randn(2, 2, 7, 6)
x[0, 0, 1, 1] = x[0, 0, 2, 2] = float("nan")
x[1, 1] = -float("inf")
y, i = F.max_pool2d(x, 3, 2, 1, 1, True, True)
record("max_pool2d", x=x, y=y, i=i)
y, i = F.adaptive_max_pool2d(x, (3, 4), True)
record("adaptive_max_pool2d", x=x, y=y, i=i)
x = torch.randn(2, 2, 7, 6)
record("avg_pool2d", x=x, y=F.avg_pool2d(x, 3, 2, 1, True, False))
record("adaptive_avg_pool2d", x=x, y=F.adaptive_avg_pool2d(x, (3, 4)))
s = torch.rand(2, 2, 2)
y, i = F.fractional_max_pool2d(x, 2, (4, 3), return_indices=True, _random_samples=s)
record("fractional_max_pool2d", x=x, s=s, y=y, i=i)

x, w, b = leaf(3, 4, 5), leaf(5), leaf(5)
y = F.layer_norm(x, (5,), w, b)
g = torch.randn_like(y)
record("layer_norm", x=x, w=w, b=b, y=y, g=g, **dict(zip(("gx", "gw", "gb"), grads(y, g, x, w, b))))
w, b = leaf(4), leaf(4)
y = F.batch_norm(x, None, None, w, b, True)
record("batch_norm", x=x, w=w, b=b, y=y, g=g, **dict(zip(("gx", "gw", "gb"), grads(y, g, x, w, b))))
y = F.group_norm(x, 2, w, b)
record("group_norm", x=x, w=w, b=b, y=y, g=g, **dict(zip(("gx", "gw", "gb"), grads(y, g, x, w, b))))

x = torch.tensor([[1.0, 2, 3], [-1e4, 0, 1e4], [float("inf"), 0, 1], [-float("inf")] * 3])
record(
    "softmax",
    x=x,
    y=torch.softmax(x, 1),
    log=torch.log_softmax(x, 1),
    sum=torch.logsumexp(x, 1),
)
x, t, w = leaf(6, 5), torch.tensor([0, 4, -100, 2, 2, 1]), torch.rand(5)
y = F.cross_entropy(x, t, w, reduction="none", label_smoothing=0.1)
g = torch.randn_like(y)
record("cross_entropy", x=x, t=t, w=w, y=y, g=g, gx=grads(y, g, x)[0])

q, k, v = leaf(2, 9, 4), leaf(2, 7, 4), leaf(2, 7, 3)
m = torch.rand(9, 7) > 0.4
m[3] = False
y = F.scaled_dot_product_attention(q, k, v, m)
g = torch.randn_like(y)
gq, gk, gv = grads(y, g, q, k, v)
record("attention", q=q, k=k, v=v, m=m, y=y, g=g, gq=gq, gk=gk, gv=gv)

x = torch.tensor([[3.0, float("nan"), 1, 3, -0.0, 0.0, float("nan"), -float("inf")]])
up, down = torch.sort(x, dim=1, stable=True), torch.sort(x, dim=1, stable=True, descending=True)
record("sort", x=x, up=up[0], up_i=up[1], down=down[0], down_i=down[1])

x, i, s = torch.randn(3, 4), torch.randint(0, 3, (3, 4)), torch.randn(3, 4)
s[0, 0] = float("nan")
for reduce in ("sum", "prod", "mean", "amax", "amin"):
    for keep in (True, False):
        y = x.scatter_reduce(0, i, s, reduce, include_self=keep)
        record(f"scatter_{reduce}_{keep}", x=x, i=i, s=s, y=y)

x = leaf(1, 2, 5, 4)
modes = ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
for mode in modes:
    for aligned in (False, True) if mode.startswith("bi") else (None,):
        y = F.interpolate(x, scale_factor=(1.7, 0.6), mode=mode, align_corners=aligned)
        g = torch.randn_like(y)
        record(f"interpolate_{mode}_{bool(aligned)}", x=x, y=y, g=g, gx=grads(y, g, x)[0])
for mode in ("bilinear", "bicubic"):
    y = F.interpolate(x, size=(3, 7), mode=mode, antialias=True)
    g = torch.randn_like(y)
    record(f"antialias_{mode}", x=x, y=y, g=g, gx=grads(y, g, x)[0])
grid = (torch.rand(1, 3, 4, 2) * 3 - 1.5).requires_grad_()
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        y = F.grid_sample(x, grid, mode, padding, False)
        g = torch.randn_like(y)
        gx, gg = grads(y, g, x, grid)
        record(f"grid_sample_{mode}_{padding}", x=x, grid=grid, y=y, g=g, gx=gx, gg=gg)

for kind in ("LSTM", "GRU"):
    layer = getattr(torch.nn, kind)(3, 4)
    weights = dict(zip(("w_ih", "w_hh", "b_ih", "b_hh"), layer.parameters()))
    x = leaf(5, 2, 3)
    h = tuple(leaf(1, 2, 4) for _ in range(2))
    y, _ = layer(x, h if kind == "LSTM" else h[0])
    g = torch.randn_like(y)
    names = ("gx", "g_ih", "g_hh", "gb_ih", "gb_hh")
    found = dict(zip(names, grads(y, g, x, *weights.values())))
    record(kind.lower(), x=x, h=h[0][0], c=h[1][0], y=y, g=g, **weights, **found)

np.savez_compressed(Path(__file__).parent / "network_kernels.npz", **arrays)
