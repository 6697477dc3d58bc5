"""A whole training step is made of ops that modes see.

`Twin` does with copies what the ops that it is shown do with the tensors of a program. If the
copies of all parameters, gradients, states and buffers are equal in the end, then nothing was
written, and nothing was made, without an op that says so.
"""
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.nn.functional import cross_entropy
from flambeau.utils._python_dispatch import TorchDispatchMode


def memory(tensor):
    return tensor.untyped_storage().data_ptr()


class Twin(TorchDispatchMode):
    def __init__(self, *tensors):
        super().__init__()
        self.twins, self.kept = {}, []      # by address, which what is kept leaves to no other
        for t in tensors:
            self.keep(t, t.detach().clone())

    def keep(self, tensor, twin):
        self.kept.append(tensor)
        if tensor.numel():
            size = twin.untyped_storage().nbytes() // twin.itemsize
            self.twins.setdefault(memory(tensor), twin.as_strided((size,), (1,), 0))

    def twin(self, value):
        if isinstance(value, (list, tuple)):
            return type(value)([self.twin(v) for v in value])
        if not isinstance(value, torch.Tensor) or not value.numel():
            return value
        return self.twins[memory(value)].as_strided(
            value.shape, value.stride(), value.storage_offset())

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if op is torch.ops.aten.lift_fresh.default:         # numbers of the program
            self.keep(args[0], args[0].clone())
        state = torch.get_rng_state()
        again = op(*self.twin(args), **{k: self.twin(v) for k, v in kwargs.items()})
        torch.set_rng_state(state)
        found = op(*args, **kwargs)
        for a, b in zip(*[r if isinstance(r, (list, tuple)) else (r,) for r in (found, again)]):
            if isinstance(a, torch.Tensor) and a.numel():
                assert a.stride() == b.stride(), op
                self.keep(a, b)
        return found

    def check(self, **tensors):
        for name, tensor in tensors.items():
            assert memory(tensor) in self.twins, f"{name} was made by no op"
            assert self.twin(tensor).equal(tensor.detach()), f"{name} was written by no op"


def states(optimizer):
    return {f"state {i} {name}": value
            for i, state in enumerate(optimizer.state.values()) for name, value in state.items()
            if isinstance(value, torch.Tensor)}


def tensors_of(model, optimizer):
    return {**dict(model.named_parameters()), **dict(model.named_buffers()), **states(optimizer),
            **{f"{n}.grad": p.grad for n, p in model.named_parameters() if p.grad is not None}}


OPTIMIZERS = [
    ("SGD", {"momentum": 0.9}), ("SGD", {"foreach": False, "weight_decay": 0.1}),
    ("SGD", {"fused": True}), ("Adam", {}), ("Adam", {"fused": True}), ("Adam", {"amsgrad": True}),
    ("AdamW", {"foreach": True}), ("RMSprop", {}), ("Adagrad", {}), ("NAdam", {})]


@pytest.mark.parametrize("to_none", [True, False])
@pytest.mark.parametrize("name, options", OPTIMIZERS)
def test_nothing_goes_unseen(name, options, to_none):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True),
                          nn.Dropout(0.5), nn.Linear(6, 3), nn.LayerNorm(3))
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **options)
    x, target = torch.randn(8, 4), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1])

    def step():
        optimizer.zero_grad(set_to_none=to_none)
        for _ in range(2):                  # the second pass adds to what the first has left
            hidden = model(x).clone()
            hidden[:, 0] = 0.5
            hidden[target == 1] *= 2
            cross_entropy(hidden, target, label_smoothing=0.1).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(2):                      # also the first, which makes the states
        with Twin(x, target, *tensors_of(model, optimizer).values()) as twin:
            step()
        twin.check(**tensors_of(model, optimizer))
