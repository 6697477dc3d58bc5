"""What a network looks at: attributions by gradients, perturbation, layers and neurons."""
# needs: captum
import json

import numpy as np
import torch
from captum.attr import (
    LRP,
    DeepLift,
    DeepLiftShap,
    FeatureAblation,
    GradientShap,
    GuidedBackprop,
    InputXGradient,
    IntegratedGradients,
    KernelShap,
    LayerConductance,
    LayerGradCam,
    Lime,
    NeuronConductance,
    NoiseTunnel,
    Occlusion,
    Saliency,
    ShapleyValueSampling,
)
from captum.metrics import infidelity, sensitivity_max
from torch import nn

np.random.seed(0)
torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
x = torch.rand(2, 1, 6, 6)
base = torch.zeros(4, 1, 6, 6) + 0.1 * torch.rand(4, 1, 6, 6)
result = {}


def keep(name, attribution):
    result[name] = [attribution.sum().item(), attribution.abs().sum().item()]


for method in (Saliency, InputXGradient, GuidedBackprop, DeepLift, IntegratedGradients):
    keep(method.__name__, method(model).attribute(x.clone().requires_grad_(), target=1))
dense = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
keep("LRP", LRP(dense).attribute(x[:, 0, 0], target=1))
keep("GradientShap", GradientShap(model).attribute(x, baselines=base, target=1, n_samples=4))
keep("DeepLiftShap", DeepLiftShap(model).attribute(x, baselines=base, target=1))
keep("NoiseTunnel", NoiseTunnel(Saliency(model)).attribute(
    x, target=1, nt_samples=3, nt_type="smoothgrad_sq"))
keep("Occlusion", Occlusion(model).attribute(
    x, target=1, sliding_window_shapes=(1, 3, 3), strides=(1, 2, 2)))
mask = torch.arange(36).view(1, 1, 6, 6) // 9
keep("FeatureAblation", FeatureAblation(model).attribute(x, target=1, feature_mask=mask))
keep("Shapley", ShapleyValueSampling(model).attribute(x, target=1, feature_mask=mask, n_samples=3))
keep("GradCam", LayerGradCam(model, model[0]).attribute(x, target=1))
keep("Conductance", LayerConductance(model, model[4]).attribute(x, target=1, n_steps=5))
keep("Neuron", NeuronConductance(model, model[4]).attribute(x, neuron_selector=2, target=1,
                                                            n_steps=5))
keep("KernelShap", KernelShap(model).attribute(x[:1], target=1, feature_mask=mask, n_samples=12))
keep("Lime", Lime(model).attribute(x[:1], target=1, feature_mask=mask, n_samples=12))
ig, delta = IntegratedGradients(model).attribute(x, target=1, return_convergence_delta=True)
result["delta"] = delta.tolist()


def perturb(inputs):
    noise = 0.01 * torch.randn_like(inputs)
    return noise, inputs - noise


result["infidelity"] = infidelity(model, perturb, x, ig, target=1).tolist()
result["sensitivity"] = sensitivity_max(
    Saliency(model).attribute, x, target=1, n_perturb_samples=3).tolist()
print(json.dumps(result))
