"""vit-pytorch: vision transformers of several kinds."""
# needs: vit_pytorch
# tolerance: 2e-3
import json

import torch
from vit_pytorch import SimpleViT, ViT
from vit_pytorch.cait import CaiT
from vit_pytorch.cct import CCT
from vit_pytorch.cvt import CvT
from vit_pytorch.deepvit import DeepViT
from vit_pytorch.mobile_vit import MobileViT
from vit_pytorch.pit import PiT

SIZE = {"image_size": 32, "patch_size": 8, "num_classes": 4, "dim": 32, "heads": 4, "mlp_dim": 48}
makers = {
    "vit": lambda: ViT(**SIZE, depth=2),
    "simple": lambda: SimpleViT(**SIZE, depth=2),
    "deep": lambda: DeepViT(**SIZE, depth=2),
    "cait": lambda: CaiT(**SIZE, depth=2, cls_depth=1),
    "cct": lambda: CCT(img_size=32, embedding_dim=32, n_conv_layers=1, kernel_size=7, stride=2,
                       padding=3, pooling_kernel_size=3, pooling_stride=2, pooling_padding=1,
                       num_layers=2, num_heads=4, mlp_ratio=2.0, num_classes=4),
    "pit": lambda: PiT(**SIZE, depth=(1, 1)),
    "cvt": lambda: CvT(num_classes=4, s1_emb_dim=16, s2_emb_dim=16, s3_emb_dim=16, s1_heads=1,
                       s2_heads=1, s3_heads=1, s1_depth=1, s2_depth=1, s3_depth=1),
    "mobile": lambda: MobileViT(image_size=(32, 32), dims=[16, 16, 16],
                                channels=[8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 16], num_classes=4,
                                patch_size=(1, 1)),
}
out = {}
for name, make in makers.items():
    torch.manual_seed(0)
    model = make()
    images, labels = torch.randn(2, 3, 32, 32), torch.tensor([0, 3])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        torch.manual_seed(1)
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    out[name] = losses
print(json.dumps(out))
