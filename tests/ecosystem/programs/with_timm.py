"""timm: the forward pass and a step of training of four families of models."""
# needs: timm
# tolerance: 1e-3
import json

import timm
import torch
from timm.optim import create_optimizer_v2

MODELS = {
    "resnet18": 64,
    "vit_tiny_patch16_224": 64,
    "convnext_atto": 64,
    "efficientnet_b0": 64,
}


def train_step(name, size):
    torch.manual_seed(0)
    sized = {"img_size": size} if name.startswith("vit") else {}
    model = timm.create_model(name, pretrained=False, num_classes=5, **sized)
    images, labels = torch.randn(2, 3, size, size), torch.tensor([1, 3])
    model.eval()
    with torch.no_grad():
        before = model(images)
        features = model.forward_features(images)
    model.train()
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"logits": before[0].tolist(), "features": list(features.shape), "losses": losses,
            "parameters": sum(p.numel() for p in model.parameters())}


print(json.dumps({name: train_step(name, size) for name, size in MODELS.items()}))
