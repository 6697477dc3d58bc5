"""Medical images: transforms, U-Nets, losses, sliding windows, metrics."""
# needs: monai
import json
import warnings

import numpy as np
import torch
from monai.data import CacheDataset, DataLoader, decollate_batch
from monai.inferers import SlidingWindowInferer
from monai.losses import DiceCELoss, DiceLoss, FocalLoss, SSIMLoss, TverskyLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric
from monai.networks.nets import SwinUNETR, UNet, ViT
from monai.networks.utils import one_hot
from monai.transforms import (
    Activations,
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    RandFlipd,
    RandGaussianNoised,
    RandRotate90d,
    RandSpatialCropd,
    Resized,
    Rotate,
    ScaleIntensityd,
    Spacing,
)
from monai.utils import set_determinism

warnings.simplefilter("ignore")
set_determinism(0)
rng = np.random.default_rng(0)
images = rng.normal(size=(4, 16, 16, 16)).astype("float32")
data = [{"image": i, "label": (i > 0.5).astype("float32")} for i in images]
keys = ["image", "label"]
transform = Compose([
    EnsureChannelFirstd(keys, channel_dim="no_channel"), ScaleIntensityd("image"),
    RandSpatialCropd(keys, [12, 12, 12], random_size=False), RandFlipd(keys, 0.5, 0),
    RandRotate90d(keys, 0.5), Resized(keys, [8, 8, 8], mode=("trilinear", "nearest")),
    RandGaussianNoised("image", 0.5)])
loader = DataLoader(CacheDataset(data, transform, progress=False), batch_size=2, shuffle=True)
model = UNet(3, 1, 2, channels=(4, 8), strides=(2,), num_res_units=1, norm="INSTANCE")
loss_function = DiceCELoss(to_onehot_y=True, softmax=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
losses = []
for _ in range(2):
    for batch in loader:
        optimizer.zero_grad()
        loss = loss_function(model(batch["image"]), batch["label"])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
model.eval()
with torch.no_grad():
    volume = torch.from_numpy(images[:1, None])
    out = SlidingWindowInferer((8, 8, 8), overlap=0.25, mode="gaussian")(volume, model)
    vit = ViT(1, (8, 8), (4, 4), hidden_size=12, mlp_dim=16, num_layers=1, num_heads=2,
              spatial_dims=2)(volume[:, :, 0, :8, :8])[0]
discrete = Compose([Activations(softmax=True), AsDiscrete(argmax=True, to_onehot=2)])
guess = torch.stack([discrete(o) for o in decollate_batch(out)])
truth = one_hot((volume > 0.5).float(), 2)
dice = DiceMetric(include_background=False)
dice(guess, truth)
distance = HausdorffDistanceMetric(percentile=95)
distance(guess, truth)
pair = out.softmax(1), (volume > 0.5).float()
turned = Rotate(0.3, padding_mode="border")(volume[0])
spaced = Spacing((2.0, 1.5, 1.0))(volume[0])
print(json.dumps({
    "losses": losses,
    "shape": list(out.shape),
    "out": [out.sum().item(), out.abs().sum().item()],
    "vit": vit.flatten()[:6].tolist(),
    "dice": dice.aggregate().item(),
    "hausdorff": distance.aggregate().item(),
    "other losses": [DiceLoss(to_onehot_y=True)(*pair).item(),
                     FocalLoss(to_onehot_y=True)(out, pair[1]).item(),
                     TverskyLoss(to_onehot_y=True)(*pair).item(),
                     SSIMLoss(3)(volume, volume * 0.9).item()],
    "turned": turned.sum().item(),
    "spaced": [list(spaced.shape), spaced.affine.diagonal().tolist()],
    "parameters": sum(p.numel() for p in SwinUNETR(1, 2, feature_size=12).parameters())
}))
