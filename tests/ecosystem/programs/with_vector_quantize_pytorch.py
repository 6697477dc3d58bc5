"""vector-quantize-pytorch: codebooks of several kinds, trained by gradients and averages."""
# needs: vector_quantize_pytorch
# tolerance: 2e-3
import json

import torch
from vector_quantize_pytorch import (
    FSQ,
    LFQ,
    RandomProjectionQuantizer,
    ResidualVQ,
    VectorQuantize,
)

makers = {
    "plain": lambda: VectorQuantize(dim=16, codebook_size=32, decay=0.8, commitment_weight=1.0),
    "kmeans": lambda: VectorQuantize(dim=16, codebook_size=8, kmeans_init=True, kmeans_iters=4),
    "cosine": lambda: VectorQuantize(dim=16, codebook_size=32, use_cosine_sim=True),
    "small": lambda: VectorQuantize(dim=16, codebook_size=32, codebook_dim=4),
    "heads": lambda: VectorQuantize(dim=16, codebook_size=16, heads=2, codebook_dim=8,
                                    separate_codebook_per_head=True),
    "orthogonal": lambda: VectorQuantize(dim=16, codebook_size=16, orthogonal_reg_weight=10.0),
    "residual": lambda: ResidualVQ(dim=16, num_quantizers=3, codebook_size=16),
    "lookup_free": lambda: LFQ(codebook_size=16, dim=4, entropy_loss_weight=0.1),
}
out = {}
for name, make in makers.items():
    torch.manual_seed(0)
    quantizer = make()
    width = 4 if name == "lookup_free" else 16
    x = torch.randn(2, 20, width, requires_grad=True)
    history = []
    for _ in range(3):
        quantized, codes, loss = quantizer(x)
        history.append([quantized.mean().item(), int(codes.sum()), float(loss.sum())])
    (quantized.square().mean() + loss.sum()).backward()
    out[name] = [history, x.grad.norm().item()]
torch.manual_seed(1)
finite = FSQ([8, 5, 5])
x = torch.randn(1, 10, 3, requires_grad=True)
quantized, codes = finite(x)
quantized.sum().backward()
out["finite"] = [quantized.tolist(), codes.tolist(), x.grad.norm().item(),
                 torch.equal(finite.indices_to_codes(codes), quantized)]
random = RandomProjectionQuantizer(dim=12, num_codebooks=4, codebook_dim=6, codebook_size=32)
out["random"] = random(torch.randn(1, 5, 12)).tolist()
print(json.dumps(out))
