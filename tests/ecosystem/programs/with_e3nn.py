"""Networks that commute with rotations: spherical harmonics, tensor products, gates."""
# needs: e3nn
import json

import torch
from e3nn import o3
from e3nn.io import SphericalTensor
from e3nn.math import soft_one_hot_linspace
from e3nn.nn import FullyConnectedNet, Gate, NormActivation
from e3nn.nn.models.v2106.gate_points_networks import SimpleNetwork
from e3nn.util.test import equivariance_error

torch.manual_seed(0)
points = torch.randn(6, 3)
harmonics = o3.spherical_harmonics([0, 1, 2, 3], points, normalize=True,
                                   normalization="component")
irreps = o3.Irreps("4x0e + 2x1o + 1x2e")
product = o3.FullyConnectedTensorProduct(irreps, o3.Irreps.spherical_harmonics(2), irreps)
x = irreps.randn(6, -1, requires_grad=True)
out = product(x, harmonics[:, :9])
out.square().sum().backward()
gate = Gate("2x0e", [torch.tanh], "1x0e", [torch.sigmoid], "1x1o")
linear = o3.Linear("2x0e + 1x1o", gate.irreps_in)
error = equivariance_error(linear, args_in=[linear.irreps_in.randn(3, -1)],
                           irreps_in=[linear.irreps_in], irreps_out=[linear.irreps_out])
norm = NormActivation("2x0e+1x1o", torch.sigmoid)
network = SimpleNetwork(irreps_in="3x0e", irreps_out="1x1o", max_radius=2.0, num_neighbors=3.0,
                        num_nodes=6.0, layers=1, mul=4, lmax=1)
batch = {"pos": points, "x": torch.rand(6, 3), "batch": torch.zeros(6, dtype=torch.long)}
force = network(batch)
force.sum().backward()
rotation = o3.rand_matrix()
turned = network({**batch, "pos": points @ rotation.mT})
signal = SphericalTensor(3, 1, -1)
fully = FullyConnectedNet([4, 8, 2], torch.relu)
print(json.dumps({
    "harmonics": harmonics.sum(0).tolist(),
    "product": out.sum(0).tolist(),
    "gradient": [x.grad.norm().item(), product.weight.grad.norm().item()],
    "gate": gate(linear(torch.ones(2, 5))).flatten().tolist(),
    "equivariant": max(v.max().item() for v in error.values()) < 1e-4,
    "norm": norm(torch.ones(1, 5)).flatten().tolist(),
    "wigner": o3.wigner_3j(1, 2, 1).abs().sum().item(),
    "matrix": o3.Irrep("2e").D_from_matrix(rotation).flatten().tolist(),
    "force": force.flatten().tolist(),
    "turns": (turned - force @ rotation.mT).abs().max().item() < 1e-3,
    "weights": [p.grad.norm().item() for p in network.parameters() if p.grad is not None],
    "peaks": signal.sum_of_diracs(points[:2], torch.ones(2)).tolist(),
    "one hot": soft_one_hot_linspace(torch.tensor([0.5]), 0.0, 1.0, 4, "smooth_finite", True
                                     ).flatten().tolist(),
    "fully": fully(torch.ones(1, 4)).flatten().tolist(),
}))
