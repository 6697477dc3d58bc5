"""Calls whose result type under autocast is recorded: expressions over tensors of these shapes."""
from __future__ import annotations

from typing import Any

SHAPES = {"v": (3,), "m": (3, 3), "b": (2, 3, 3), "r": (3, 2), "s": (1, 2, 5), "p": (1, 2, 5, 5),
          "q": (1, 2, 5, 5, 5), "k": (2, 2, 3), "kk": (2, 2, 3, 3), "kkk": (2, 2, 3, 3, 3),
          "t": (16,), "one": (1,), "w": (4, 3, 3), "g": (1, 3, 3, 2), "c": (2, 2, 2)}

CALLS = """
torch.mm(m, m)
torch.mv(m, v)
torch.dot(v, v)
torch.bmm(b, b)
torch.matmul(v, v)
m @ v
torch.addmm(m, m, m)
torch.addr(m, v, v)
torch.addbmm(m, b, b)
torch.baddbmm(b, b, b)
F.linear(m, m, v)
F.linear(input=m, weight=m)
F.bilinear(m, m, w)
F.conv1d(s, k)
F.conv2d(p, kk)
F.conv3d(q, kkk)
F.conv_transpose1d(s, k)
F.conv_transpose2d(p, kk)
F.conv_transpose3d(q, kkk)
F.prelu(m, one)
F.scaled_dot_product_attention(b, b, b)
torch.einsum("ij,jk->ik", m, m)
torch.tensordot(m, m, 1)
torch.linalg.multi_dot([m, m])
torch.linalg.vecdot(v, v)
torch.outer(v, v)
torch.kron(m, m)
torch.cdist(m, m)
F.cosine_similarity(m, m)
F.softmax(m, -1)
F.log_softmax(m, -1)
F.layer_norm(m, (3,))
F.batch_norm(m, None, None, training=True)
F.group_norm(s, 1)
torch.exp(v)
v ** 2.5
v.sum()
v.prod()
v.cumsum(0)
torch.linalg.vector_norm(v)
v.var()
F.avg_pool2d(p, 2)
F.avg_pool3d(q, 2)
F.max_pool2d(p, 2)
F.adaptive_avg_pool2d(p, 2)
F.adaptive_avg_pool3d(q, 2)
F.adaptive_max_pool3d(q, 2)
F.grid_sample(p, g)
F.interpolate(p, scale_factor=2.0, mode="bilinear")
F.mse_loss(v, v)
F.l1_loss(v, v)
F.smooth_l1_loss(v, v)
F.huber_loss(v, v)
F.binary_cross_entropy(v - 0.5, v - 0.5)
F.binary_cross_entropy_with_logits(v, v)
F.cross_entropy(m, torch.tensor([0, 1, 2]))
F.cross_entropy(m, m)
F.nll_loss(m, torch.tensor([0, 1, 2]))
F.kl_div(v, v)
F.cosine_embedding_loss(m, m, torch.ones(3))
F.hinge_embedding_loss(v, torch.ones(3))
F.poisson_nll_loss(v, v)
F.margin_ranking_loss(v, v, torch.ones(3))
F.soft_margin_loss(v, torch.ones(3))
F.triplet_margin_loss(m, m, m)
torch.quantile(v, 0.5)
torch.trace(m)
torch.view_as_complex(r)
torch.stft(t, 4, return_complex=True, window=torch.ones(4))
torch.linalg.cholesky(m * 0 + torch.eye(3, dtype=m.dtype))
torch.linalg.inv(m)
torch.linalg.solve(m, m)
torch.linalg.svdvals(m)
torch.linalg.eigvals(m)
torch.linalg.eigvalsh(m)
torch.fft.fft(v)
torch.fft.irfft(v)
F.pad(s, (1, 1), mode="reflect")
F.pad(s, (1, 1), mode="replicate")
F.pad(s, (1, 1))
torch.cat([v, v.bfloat16()])
torch.stack([v, v.bfloat16()])
torch.cat([v.bfloat16(), v.bfloat16()])
torch.addcmul(v, v, v)
F.gelu(v)
F.embedding(torch.tensor([0]), m)
m.clone().addmm_(m, m)
torch.mm(m, m, out=torch.empty(0, dtype=m.dtype))
torch.lstm_cell(m, (c[0, :1].expand(3, 2), c[0, :1].expand(3, 2)), m[:1].expand(8, 3), \
c[0, :1].expand(8, 2))[0]
torch.gru_cell(m, c[0, :1].expand(3, 2), m[:1].expand(6, 3), c[0, :1].expand(6, 2))
torch.rnn_tanh_cell(m, c[0, :1].expand(3, 2), m[:1].expand(2, 3), c[0, :1].expand(2, 2))
""".replace("\\\n", "").strip().splitlines()


def result_types(torch: Any) -> dict[str, list[str]]:
    """For each call the type of its result under autocast to bfloat16: of float32 arguments, of
    bfloat16 and of float64 ones; the name of the error if there is one."""
    return {call: [_result_type(torch, call, getattr(torch, dtype))
                   for dtype in ("float32", "bfloat16", "float64")] for call in CALLS}


def _result_type(torch: Any, call: str, dtype: Any) -> str:
    names = {name: torch.linspace(0.5, 1.4, torch.Size(shape).numel()).reshape(shape).to(dtype)
             for name, shape in SHAPES.items()}
    names["m"] = (names["m"].float() + torch.eye(3)).to(dtype)
    names |= {"torch": torch, "F": torch.nn.functional}
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return str(eval(call, names).dtype)
    except (RuntimeError, NotImplementedError):
        return "error"
