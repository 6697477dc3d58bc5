"""Dictionaries of tensors as tensors: shapes, indexing, modules, memory-mapped files, vmap."""
# needs: tensordict
import json
import tempfile

import torch
from tensordict import (
    LazyStackedTensorDict,
    MemoryMappedTensor,
    NonTensorData,
    TensorClass,
    TensorDict,
    from_module,
    pad_sequence,
)
from tensordict.nn import (
    ProbabilisticTensorDictModule,
    ProbabilisticTensorDictSequential,
    TensorDictModule,
    TensorDictSequential,
)
from torch import nn

torch.manual_seed(0)
data = TensorDict({"a": torch.randn(4, 3), "nested": {"b": torch.arange(8).view(4, 2)},
                   "name": NonTensorData("x", batch_size=[4])}, batch_size=[4])
flat = data.flatten_keys(".")
stacked = torch.stack([data, data * 2])
joined = torch.cat([data, data[:2]])
lazy = LazyStackedTensorDict(TensorDict(q=torch.ones(2)), TensorDict(q=torch.zeros(3)))
padded = pad_sequence([TensorDict(s=torch.ones(2), batch_size=[2]),
                       TensorDict(s=torch.ones(3), batch_size=[3])])


class Batch(TensorClass):
    image: torch.Tensor
    label: torch.Tensor


batch = Batch(image=torch.rand(6, 2, 2), label=torch.arange(6), batch_size=[6])
model = TensorDictSequential(
    TensorDictModule(nn.Linear(3, 4), in_keys=["a"], out_keys=["hidden"]),
    TensorDictModule(lambda h, b: h.tanh() * b.sum(-1, keepdim=True),
                     in_keys=["hidden", ("nested", "b")], out_keys=["out"]))
model(data)["out"].sum().backward()
policy = ProbabilisticTensorDictSequential(
    TensorDictModule(lambda a: (a, a.exp()), in_keys=["a"], out_keys=["loc", "scale"]),
    ProbabilisticTensorDictModule(in_keys=["loc", "scale"], out_keys=["action"],
                                  distribution_class=torch.distributions.Normal,
                                  return_log_prob=True))
sampled = policy(data.clone())

networks = [nn.Linear(3, 2) for _ in range(3)]
parameters = torch.stack([from_module(n, as_module=False) for n in networks])
template = nn.Linear(3, 2)


def call(parameters, x):
    with parameters.to_module(template):
        return template(x)


ensemble = torch.vmap(call, (0, None))(parameters, data["a"])
with tempfile.TemporaryDirectory() as folder:
    data.select("a", ("nested", "b")).memmap(folder)
    mapped = TensorDict.load_memmap(folder)
    memory = mapped["a"].sum().item()
    is_mapped = isinstance(mapped["a"], MemoryMappedTensor)
print(json.dumps({
    "keys": sorted(map(str, flat.keys())),
    "sums": [stacked["a"].sum().item(), joined["nested", "b"].sum().item()],
    "shapes": [list(stacked.shape), list(joined.shape), list(data.reshape(2, 2).shape),
               list(data.unsqueeze(0).shape), list(padded["s"].shape), list(lazy.shape)],
    "split": [list(t.shape) for t in data.split(3)],
    "masked": data[data["a"][:, 0] > 0]["a"].sum().item(),
    "norm": sum(v.item() for v in data.select("a").norm().values()),
    "name": data.get_non_tensor("name") if hasattr(data, "get_non_tensor") else data["name"],
    "batch": [batch[2:4].label.tolist(), batch.reshape(2, 3).image.shape[2]],
    "gradient": model[0].module.weight.grad.flatten().tolist(),
    "action": [sampled["action"].sum().item(), sampled["action_log_prob"].sum().item()],
    "ensemble": ensemble.sum((1, 2)).tolist(),
    "mapped": [memory, is_mapped],
    "state": [list(v.shape) for v in model.state_dict().values()],
}))
