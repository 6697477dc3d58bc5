"""Calls on other types than float32, and on shapes that no vector fits: short and odd rows,
expanded indices, few entries."""

from .registry import expression

for _dtype in ("float16", "bfloat16"):
    _halves = {"x": f"torch.randn(300, 211).to(torch.{_dtype})"}
    for _code in ("x.softmax(1)", "F.layer_norm(x, (211,))", "x * 0.1", "torch.isclose(x, x)",
                  "torch.full_like(x, 2)", "x.clamp(0, 1)"):  # fmt: skip
        expression("kernels", _code, title=f"{_code} {_dtype}", **_halves)
for _dtype in ("int32", "uint8"):
    expression("kernels", "x.clamp(3, 20)", title=f"x.clamp(3, 20) {_dtype}",
               x=f"torch.randint(0, 50, (300, 211)).to(torch.{_dtype})")  # fmt: skip
for _code in ("x.sum()", "x.sum(2)", "x.mean(2)", "x.prod(2)", "x.cumsum(2)", "x.abs()"):
    expression("kernels", _code, title=f"{_code} complex64",
               x="torch.randn(40, 64, 96, dtype=torch.complex64)")  # fmt: skip
for _size in ("(10000, 4)", "(2000, 17)", "(1000, 33)"):
    for _code in ("x.max(1)", "x.argmax(1)", "x.amax(1)", "x.cumsum(1)"):
        expression("kernels", _code, title=f"{_code} {_size}", x=f"torch.randn{_size}")
expression("kernels", "v.gather(0, i.expand(-1, 32))",
           v="torch.randn(5000, 32)", i="torch.randint(5000, (3000, 1))")  # fmt: skip
expression("kernels", "v.gather(1, i)",
           v="torch.randn(5000, 32)", i="torch.randint(32, (5000, 8))")  # fmt: skip
for _code in ("torch.special.ndtri(p)", "p.erfinv()", "p.lgamma()", "torch.polygamma(1, p)"):
    for _dtype in ("float32", "float64"):
        expression("kernels", _code, title=f"{_code} {_dtype}",
                   p=f"torch.rand(200, 311, dtype=torch.{_dtype}) * 0.98 + 0.01")  # fmt: skip
_SPARSE = {"d": "(torch.rand(500, 500) < 0.02) * torch.randn(500, 500)",
           "x": "torch.randn(500, 64)"}
for _code in ("s @ s", "torch.sparse.mm(s, x, 'amax')", "torch.sparse.mm(s, x, 'sum')"):
    expression("kernels", _code, **_SPARSE, s="d.to_sparse_csr()")
expression("overhead", "torch.sparse.mm(s, x, 'sum')", x="torch.randn(5, 5)",
           s="((torch.rand(5, 5) < 0.5) * torch.randn(5, 5)).to_sparse_csr()")  # fmt: skip
expression("kernels", "c.to_sparse_csr()", **_SPARSE, c="d.to_sparse().coalesce()")
