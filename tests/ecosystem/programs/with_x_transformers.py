"""x-transformers: decoders, encoders and attention with many options, trained and sampled."""
# needs: x_transformers
# tolerance: 2e-3
import json

import torch
from x_transformers import (
    AutoregressiveWrapper,
    Decoder,
    Encoder,
    TransformerWrapper,
    ViTransformerWrapper,
    XTransformer,
)

torch.manual_seed(0)
words = torch.randint(0, 40, (2, 16))
options = {
    "plain": {}, "rotary": {"rotary_pos_emb": True}, "alibi": {"alibi_pos_bias": True},
    "rms_glu": {"use_rmsnorm": True, "ff_glu": True, "ff_swish": True},
    "memory": {"attn_num_mem_kv": 4}, "multi_query": {"attn_one_kv_head": True},
    "qk_norm": {"attn_qk_norm": True}, "sandwich": {"sandwich_norm": True},
    "relative": {"rel_pos_bias": True}, "flash": {"attn_flash": True},
    "gated": {"gate_residual": True}, "talking": {"attn_pre_talking_heads": True},
}
out = {}
for name, chosen in options.items():
    torch.manual_seed(1)
    model = AutoregressiveWrapper(TransformerWrapper(
        num_tokens=40, max_seq_len=32,
        attn_layers=Decoder(dim=32, depth=2, heads=4, attn_dim_head=8, **chosen)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(words)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    torch.manual_seed(2)
    out[name] = {"losses": losses, "text": model.generate(words[:, :4], 6).tolist()}
torch.manual_seed(3)
vit = ViTransformerWrapper(image_size=16, patch_size=4, num_classes=3,
                           attn_layers=Encoder(dim=32, depth=2, heads=4))
translator = XTransformer(
    dim=32, enc_num_tokens=40, enc_depth=1, enc_heads=4, enc_max_seq_len=16, dec_num_tokens=40,
    dec_depth=1, dec_heads=4, dec_max_seq_len=16)
loss = translator(words, words)
loss.backward()
out["vit"] = vit(torch.randn(1, 3, 16, 16)).tolist()
out["translator"] = loss.item()
print(json.dumps(out))
