"""torchvision: transforms of both kinds, datasets from files, a classifier's step, pictures."""
# needs: torchvision, PIL
# tolerance: 1e-3
import json
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image
from torchvision import datasets, models, transforms, tv_tensors, utils
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import v2

torch.manual_seed(0)
out = {}

# ---- datasets -----------------------------------------------------------------------------------
random = np.random.default_rng(0)
for label in ("cat", "dog"):
    Path("images", label).mkdir(parents=True)
    for i in range(3):
        pixels = random.integers(0, 256, (40, 36, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(f"images/{label}/{i}.png")
plain = transforms.Compose([
    transforms.Resize(36), transforms.CenterCrop(32), transforms.ToTensor(),
    transforms.Normalize([0.5] * 3, [0.25] * 3)])
folder = datasets.ImageFolder("images", plain)
loader = torch.utils.data.DataLoader(folder, batch_size=4, shuffle=True,
                                     generator=torch.Generator().manual_seed(1))
images, labels = next(iter(loader))
out["folder"] = [folder.classes, labels.tolist(), images.mean().item(), list(images.shape)]
fake = datasets.FakeData(size=4, image_size=(3, 24, 24), num_classes=3,
                         transform=transforms.PILToTensor())
out["fake"] = [int(fake[1][0].sum()), int(fake[1][1])]

# ---- transforms ---------------------------------------------------------------------------------
image = torch.rand(3, 30, 40)
torch.manual_seed(3)
first = transforms.Compose([
    transforms.RandomResizedCrop(24, antialias=True), transforms.RandomHorizontalFlip(),
    transforms.ColorJitter(0.3, 0.3, 0.3, 0.1), transforms.RandomRotation(20),
    transforms.RandomPerspective(p=1.0), transforms.GaussianBlur(3), transforms.RandomErasing(p=1),
    transforms.RandomAffine(10, (0.1, 0.1), (0.8, 1.2), 5)])
out["v1"] = [first(image).mean().item(), first(image).std().item()]
byte = (image * 255).byte()
names = ["RandomEqualize", "RandomAutocontrast", "RandomPosterize", "RandomSolarize",
         "RandomInvert", "RandomAdjustSharpness"]
arguments = {"RandomPosterize": (3,), "RandomSolarize": (128,), "RandomAdjustSharpness": (2.0,)}
out["byte"] = {name: getattr(transforms, name)(*arguments.get(name, ()), p=1.0)(
    byte).float().mean().item() for name in names}
boxes = tv_tensors.BoundingBoxes([[2, 3, 20, 25], [10, 5, 35, 28]], format="XYXY",
                                 canvas_size=(30, 40))
mask = tv_tensors.Mask(torch.randint(2, (2, 30, 40), dtype=torch.uint8))
second = v2.Compose([
    v2.RandomHorizontalFlip(p=1.0), v2.Resize((20, 24), antialias=True), v2.RandomRotation(15),
    v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes(labels_getter=None)])
torch.manual_seed(4)
changed = second({"image": tv_tensors.Image(byte), "boxes": boxes, "mask": mask, "name": "a"})
out["v2"] = {
    "image": [type(changed["image"]).__name__, changed["image"].mean().item()],
    "boxes": [type(changed["boxes"]).__name__, changed["boxes"].float().tolist(),
              list(changed["boxes"].canvas_size)],
    "mask": [type(changed["mask"]).__name__, changed["mask"].float().mean().item()]}
torch.manual_seed(5)
mixed, weights = v2.MixUp(num_classes=3)(torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 1]))
out["mixup"] = [mixed.mean().item(), weights.tolist()]
torch.manual_seed(6)
out["augmented"] = {policy.__name__: policy()(byte).float().mean().item() for policy in (
    transforms.AutoAugment, transforms.RandAugment, transforms.TrivialAugmentWide)}

# ---- models -------------------------------------------------------------------------------------
out["models"] = {}
for name in ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "swin_t", "convnext_tiny",
             "shufflenet_v2_x0_5", "squeezenet1_1"):
    torch.manual_seed(0)
    model = models.get_model(name, weights=None, num_classes=2)
    model.eval()
    with torch.no_grad():
        before = model(images)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        out["models"][name] = [before.mean().item(), loss.item(), float(sum(
            p.grad.norm() for p in model.parameters() if p.grad is not None))]
torch.manual_seed(0)
deep = models.segmentation.fcn_resnet50(weights=None, weights_backbone=None, num_classes=3).eval()
with torch.no_grad():
    out["segmentation"] = deep(torch.rand(1, 3, 40, 40))["out"].mean().item()
extractor = create_feature_extractor(
    models.resnet18(weights=None).eval(), {"layer1": "low", "layer4": "high"})
with torch.no_grad():
    out["features"] = {k: list(v.shape) for k, v in extractor(images).items()}

# ---- pictures -----------------------------------------------------------------------------------
grid = utils.make_grid(images, nrow=2, normalize=True, padding=1)
utils.save_image(grid, "grid.png")
drawn = utils.draw_bounding_boxes(byte, boxes, width=2, colors="red")
drawn = utils.draw_segmentation_masks(drawn, mask.bool(), alpha=0.5, colors=["blue", "green"])
out["pictures"] = [list(grid.shape), grid.mean().item(), list(Image.open("grid.png").size),
                   drawn.float().mean().item()]
out["version"] = torchvision.__version__.split("+")[0]
print(json.dumps(out))
