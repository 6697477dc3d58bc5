"""A quantum circuit as a layer, differentiated by backpropagation and by parameter shifts."""
# needs: pennylane
import json
import warnings

warnings.simplefilter("ignore")

import pennylane as qml
import torch

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
device = qml.device("default.qubit", wires=2)
result = {}
for method in ("backprop", "parameter-shift", "adjoint"):
    @qml.qnode(device, interface="torch", diff_method=method)
    def circuit(inputs, weights):
        qml.AngleEmbedding(inputs, wires=range(2))
        qml.StronglyEntanglingLayers(weights, wires=range(2))
        return [qml.expval(qml.PauliZ(0)), qml.expval(qml.PauliX(1))]

    weights = torch.linspace(0, 1, 12).view(2, 2, 3).requires_grad_()
    values = torch.stack(circuit(torch.tensor([0.3, -0.7]), weights))
    values.sum().backward()
    result[method] = [*values.tolist(), *weights.grad.flatten().tolist()]


@qml.qnode(device, interface="torch", diff_method="backprop")
def layer(inputs, weights):
    qml.AngleEmbedding(inputs, wires=range(2))
    qml.BasicEntanglerLayers(weights, wires=range(2))
    return qml.probs(wires=[0, 1])


torch.manual_seed(1)
model = torch.nn.Sequential(qml.qnn.TorchLayer(layer, {"weights": (2, 2)}), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
x, losses = torch.rand(5, 2), []
for _ in range(3):
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
result["trained"] = losses
print(json.dumps(result))
