"""Computer vision in tensors: filters, geometry, augmentation, features, losses."""
# needs: kornia
import json

import kornia as K
import kornia.augmentation as augment
import torch
from torch import nn

torch.manual_seed(0)
image = torch.rand(2, 3, 16, 20, requires_grad=True)
gray = K.color.rgb_to_grayscale(image)
result = {}


def keep(name, tensor):
    result[name] = [list(tensor.shape), tensor.double().sum().item(),
                    tensor.double().abs().max().item()]


keep("blur", K.filters.gaussian_blur2d(image, (5, 5), (1.5, 1.5)))
keep("sobel", K.filters.sobel(gray))
keep("canny", K.filters.canny(gray)[0])
keep("median", K.filters.median_blur(image, (3, 3)))
keep("bilateral", K.filters.bilateral_blur(gray, (3, 3), 0.1, (1.5, 1.5)))
keep("dilation", K.morphology.dilation(image, torch.ones(3, 3)))
for space in ("hsv", "lab", "luv", "ycbcr", "hls", "xyz"):
    keep(space, getattr(K.color, f"rgb_to_{space}")(image))
keep("equalize", K.enhance.equalize(image))
keep("clahe", K.enhance.equalize_clahe(image, grid_size=(2, 2)))
keep("rotate", K.geometry.rotate(image, torch.tensor([10.0, -25.0])))
corners = torch.tensor([[[0.0, 0.0], [19, 0], [19, 15], [0, 15]]]).expand(2, 4, 2)
homography = K.geometry.get_perspective_transform(corners, corners + torch.rand(2, 4, 2))
warped = K.geometry.warp_perspective(image, homography, (16, 20))
keep("warp", warped)
keep("pyramid", K.geometry.pyrdown(image))
keep("elastic", K.geometry.elastic_transform2d(image, torch.rand(2, 2, 16, 20)))
keep("harris", K.feature.harris_response(gray))
keep("hardnet", K.feature.HardNet(pretrained=False).eval()(torch.rand(2, 1, 32, 32)))
sift = K.feature.SIFTDescriptor(16, rootsift=True)
keep("sift", sift(gray[:, :, :16, :16]))
keep("distance", K.contrib.distance_transform((gray > 0.6).float()))
loss = (K.losses.ssim_loss(image, warped, 5) + K.losses.total_variation(image).sum()
        + K.losses.psnr_loss(image, warped, 1.0))
loss.backward()
keep("gradient", image.grad)
rotation = K.geometry.axis_angle_to_rotation_matrix(torch.tensor([[0.1, 0.2, 0.3]]))
keep("quaternion", K.geometry.rotation_matrix_to_quaternion(rotation))
points = torch.rand(1, 8, 2)
keep("fundamental", K.geometry.epipolar.find_fundamental(
    points.double(), (points + 0.1 * torch.rand(1, 8, 2)).double(),
    torch.ones(1, 8, dtype=torch.double)).abs())
chain = augment.AugmentationSequential(
    augment.ColorJitter(0.2, 0.2, 0.2, 0.1, p=1.0), augment.RandomHorizontalFlip(p=0.5),
    augment.RandomAffine(15.0, (0.1, 0.1), p=1.0), augment.RandomErasing(p=1.0),
    augment.RandomPerspective(0.3, p=1.0), data_keys=["input", "mask"])
torch.manual_seed(1)
augmented, mask = chain(image.detach(), (gray > 0.5).float().detach())
keep("augmented", augmented)
keep("mask", mask)
keep("matrix", chain.transform_matrix)
torch.manual_seed(2)
model = nn.Sequential(augment.Normalize(torch.zeros(3), torch.ones(3)), nn.Flatten(),
                      nn.Linear(960, 2))
keep("focal", K.losses.focal_loss(model(image.detach()), torch.tensor([0, 1]), 0.5,
                                  reduction="none"))
print(json.dumps(result))
