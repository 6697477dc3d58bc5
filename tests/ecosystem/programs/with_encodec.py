"""encodec: an untrained codec encodes, decodes and has gradients."""
# needs: encodec
# tolerance: 2e-3
import json

import torch
from encodec import EncodecModel
from encodec.modules import SEANetDecoder, SEANetEncoder
from encodec.quantization import ResidualVectorQuantizer

torch.manual_seed(0)
size = {"channels": 1, "dimension": 16, "n_filters": 4, "ratios": [4, 2], "n_residual_layers": 1}
model = EncodecModel(
    SEANetEncoder(**size), SEANetDecoder(**size),
    ResidualVectorQuantizer(dimension=16, n_q=4, bins=32), [1.5, 3.0], 8000, 1, False, None)
sound = torch.randn(1, 1, 1600)
model.eval()
with torch.no_grad():
    model.set_target_bandwidth(model.target_bandwidths[0])
    frames = model.encode(sound)
    decoded = model.decode(frames)
codes = frames[0][0]
model.train()
latent = model.encoder(sound)
quantized = model.quantizer(latent, model.frame_rate, 1.5)
restored = model.decoder(quantized.quantized)
loss = (restored - sound[..., :restored.shape[-1]]).square().mean() + quantized.penalty
loss.backward()
print(json.dumps({
    "codes": [list(codes.shape), int(codes.sum())],
    "decoded": [list(decoded.shape), decoded.mean().item(), decoded.std().item()],
    "loss": loss.item(), "bandwidth": float(quantized.bandwidth),
    "gradient": float(sum(p.grad.norm() for p in model.parameters() if p.grad is not None)),
}))
