"""Calls that are arithmetic."""

from .registry import expression

LARGE = {"a": "torch.rand(1024, 1024)", "b": "torch.rand(1024, 1024)", "v": "torch.rand(1024)"}
for _code in (
    "a + b",
    "a * v",
    "a.exp()",
    "a.tanh()",
    "a.sum()",
    "a.sum(0)",
    "a.t().contiguous()",
    "a.softmax(1)",
    "F.layer_norm(a, (1024,), v, v)",
    "F.gelu(a)",
    "a.argmax(1)",
    "a.cumsum(1)",
    "a.sort(1)",
    "a.topk(5)",
    "a // b",
    "a % b",
    "a.t().sum()",
    "a.erfinv()",
    "a.cummax(1)",
    "a[a > 0.5]",
    "F.hardswish(a)",
    "F.hardshrink(a)",
    "a.clamp(0.2, 0.8)",
    "torch.cat([a, b], 1)",
    "torch.stack([v, v], 1)",
    "torch.zeros_like(a.t())",
):
    expression("kernels", _code, **LARGE)
expression("kernels", "a @ b", 2 * 1024**3, **LARGE)
for _code in ("x.sum(0)", "x.sum(1)", "x.sum(2)", "x.mean((0, 2))", "x.flip(2)"):
    expression("kernels", _code, x="torch.rand(64, 128, 96)")
expression("kernels", "a + b.t()", a="torch.rand(1448, 1448)", b="torch.rand(1448, 1448)")
expression("kernels", "x.index_select(1, i)",
           x="torch.rand(512, 600)", i="torch.randint(600, (300,))")  # fmt: skip
expression("kernels", "F.binary_cross_entropy_with_logits(x, y)",
           x="torch.rand(512, 200)", y="torch.rand(512, 200)")  # fmt: skip
expression("kernels", "F.linear(x, w, v)", 2 * 256 * 512**2, x="torch.rand(256, 512)",
           w="torch.rand(512, 512)", v="torch.rand(512)")  # fmt: skip
expression("kernels", "torch.bmm(x, x)", 2 * 64**4, x="torch.rand(64, 64, 64)")
expression("kernels", "x @ v", x="torch.rand(1000, 1000)", v="torch.rand(1000)")
expression("kernels", "torch.linalg.lu(a)", a="torch.rand(128, 128)")
expression("kernels", "F.conv2d(x, w, padding=1)", 2 * 8 * 32 * 144 * 1024,
           x="torch.rand(8, 16, 32, 32)", w="torch.rand(32, 16, 3, 3)")  # fmt: skip
expression("kernels", "F.max_pool2d(x, 2)", x="torch.rand(8, 16, 64, 64)")
expression("kernels", "F.scaled_dot_product_attention(q, q, q, is_causal=True)",
           q="torch.rand(4, 4, 128, 32)")  # fmt: skip
expression("kernels", "F.embedding(i, w)",
           i="torch.randint(1000, (64, 64))", w="torch.rand(1000, 64)")  # fmt: skip
expression("kernels", "F.huber_loss(x, y)", x="torch.rand(256, 1024)", y="torch.rand(256, 1024)")
expression("kernels", "F.group_norm(x, 8)", x="torch.rand(1024, 256)")
expression("kernels", "F.pad(x, (1, 1, 1, 1), 'reflect')", x="torch.rand(8, 16, 64, 64)")
expression("kernels", "F.grid_sample(x, g, 'bicubic', align_corners=False)",
           x="torch.rand(2, 3, 64, 64)", g="2 * torch.rand(2, 64, 64, 2) - 1")  # fmt: skip
expression("kernels", "x.index_reduce(0, i, y, 'amax')", x="torch.randn(1000, 64)",
           i="torch.randint(1000, (2000,))", y="torch.randn(2000, 64)")  # fmt: skip
expression("kernels", "F.ctc_loss(x.log_softmax(2), c, [50] * 16, [30] * 16)",
           x="torch.randn(50, 16, 20)", c="torch.randint(1, 20, (16, 30))")  # fmt: skip
expression("kernels", "torch.linalg.solve(a, b)",
           a="torch.rand(128, 128) + 128 * torch.eye(128)", b="torch.rand(128, 8)")  # fmt: skip
expression("kernels", "torch.cholesky_solve(b, torch.linalg.cholesky(a))",
           a="torch.rand(128, 128) + 128 * torch.eye(128)", b="torch.rand(128, 8)")  # fmt: skip
expression("kernels", "i @ i", i="torch.randint(-99, 99, (256, 256))")
expression("kernels", "torch.fft.rfft(x)", x="torch.rand(256, 4096)")
expression("kernels", "torch.fft.fft(x)", x="torch.rand(64, 1000)")
expression("kernels", "torch.fft.fft2(x)", x="torch.rand(8, 128, 128) + 0j")
expression("kernels", "torch.randn(1000, 1000)")
