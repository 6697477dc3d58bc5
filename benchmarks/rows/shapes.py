"""Kernels at the shapes, strides and dtypes of real models."""

from .registry import expression

ROWS = {
    "h.view(8, 64, 6, 16).transpose(1, 2).contiguous()": {"h": "torch.randn(8, 64, 96)"},
    "F.layer_norm(h, (96,), g, g)": {"h": "torch.randn(8, 65, 96)", "g": "torch.ones(96)"},
    "x[:, 1:, ::2] * y": {"x": "torch.randn(64, 129, 200)", "y": "torch.randn(64, 128, 100)"},
    "x.permute(0, 2, 3, 1) + b": {"x": "torch.randn(8, 48, 28, 28)", "b": "torch.randn(48)"},
    "(x.double() * 2).float()": {"x": "torch.randn(300, 701)"},
    "x.bfloat16().exp()": {"x": "torch.randn(300, 701)"},
    "(i * 3 + 1) % 7": {"i": "torch.randint(1000, (300, 701))"},
    "torch.where(m, x, 0.0)": {"x": "torch.randn(300, 701)", "m": "torch.rand(300, 701) > 0.5"},
    "x.masked_fill(m, -1e9).softmax(-1)": {
        "x": "torch.randn(8, 6, 50, 50)", "m": "torch.ones(50, 50, dtype=torch.bool).triu(1)"},
    "x.mean((2, 3))": {"x": "torch.randn(16, 96, 14, 14)"},
    "x.var(0, unbiased=False)": {"x": "torch.randn(999, 77)"},
    "x.logsumexp(1)": {"x": "torch.randn(513, 1000)"},
    "F.cross_entropy(x, y)": {"x": "torch.randn(200, 5003)", "y": "torch.randint(5003, (200,))"},
    "x.norm(dim=1)": {"x": "torch.randn(2049, 65)"},
    "F.conv1d(x, w, padding=2)": {"x": "torch.randn(8, 40, 301)", "w": "torch.randn(64, 40, 5)"},
    "F.conv2d(x, w, stride=2, padding=1)": {
        "x": "torch.randn(4, 24, 57, 57)", "w": "torch.randn(48, 24, 3, 3)"},
    "F.conv2d(x, w, padding=2, groups=32)": {
        "x": "torch.randn(4, 32, 30, 30)", "w": "torch.randn(32, 1, 5, 5)"},
    "F.linear(x, w)": {"x": "torch.randn(7, 33, 129)", "w": "torch.randn(257, 129)"},
    "x @ y": {"x": "torch.randn(48, 50, 16)", "y": "torch.randn(48, 16, 50)"},
    "torch.einsum('bthd,bshd->bhts', q, q)": {"q": "torch.randn(4, 50, 6, 16)"},
    "F.interpolate(x, size=(45, 61), mode='bilinear', align_corners=False)": {
        "x": "torch.randn(2, 16, 30, 40)"},
    "F.avg_pool2d(x, 3, 2, 1)": {"x": "torch.randn(8, 32, 33, 33)"},
    "x.unfold(1, 25, 10)": {"x": "torch.randn(16, 4000)"},
    "torch.stft(x, 256, window=w, return_complex=True).abs()": {
        "x": "torch.randn(4, 8000)", "w": "torch.hann_window(256)"},
    "x.index_add(0, i, s)": {"x": "torch.zeros(300, 32)", "i": "torch.randint(300, (2000,))",
                             "s": "torch.randn(2000, 32)"},
    "x[i, j]": {"x": "torch.randn(300, 200)", "i": "torch.randint(300, (5000,))",
                "j": "torch.randint(200, (5000,))"},
    "x.topk(10, 1)": {"x": "torch.randn(64, 5003)"},
    "torch.multinomial(p, 5)": {"p": "torch.rand(100, 500)"},
    "F.one_hot(i, 100).float()": {"i": "torch.randint(100, (2000,))"},
    "torch.cdist(x, y)": {"x": "torch.randn(200, 16)", "y": "torch.randn(300, 16)"},
    "torch.linalg.inv(a)": {"a": "torch.randn(64, 5, 5) + 5 * torch.eye(5)"},
    "torch.linalg.eigh(a)": {"a": "(lambda m: m + m.mT)(torch.randn(16, 12, 12))"},
    "torch.tril(x)": {"x": "torch.randn(6, 200, 200)"},
    "x.roll(3, 1)": {"x": "torch.randn(300, 701)"},
    "x.repeat_interleave(2, 1)": {"x": "torch.randn(100, 100, 8)"},
    "torch.bucketize(x, b)": {"x": "torch.rand(20000)", "b": "torch.linspace(0, 1, 101)"},
    "i.unique()": {"i": "torch.randint(500, (20000,))"},
    "torch.histc(x, 50)": {"x": "torch.randn(50000)"},
    "F.dropout(x, 0.1)": {"x": "torch.randn(8, 65, 96)"},
    "torch.cat([x, y, z], 1)": {"x": "torch.randn(64, 31)", "y": "torch.randn(64, 7)",
                                "z": "torch.randn(64, 129)"},
}  # fmt: skip

FLOPS = {
    "F.conv1d(x, w, padding=2)": 2 * 8 * 64 * 200 * 301,
    "F.conv2d(x, w, stride=2, padding=1)": 2 * 4 * 48 * 216 * 29 * 29,
    "F.conv2d(x, w, padding=2, groups=32)": 2 * 4 * 32 * 25 * 900,
    "F.linear(x, w)": 2 * 7 * 33 * 129 * 257,
    "x @ y": 2 * 48 * 50 * 16 * 50,
    "torch.einsum('bthd,bshd->bhts', q, q)": 2 * 24 * 50 * 16 * 50,
}

for _code, _names in ROWS.items():
    expression("shapes", _code, FLOPS.get(_code), **_names)
