"""Transforms of whole networks agree with each other and with what autograd gives."""
import copy

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.autograd import forward_ad
from flambeau.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

F = nn.functional


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(x).mean(-2))


MODELS = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)), (5,)),
    "convolutions": (lambda: nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU(), nn.AvgPool2d(2),
        nn.Conv2d(4, 4, 2, stride=2), nn.Flatten(), nn.Linear(4, 3)), (2, 4, 4)),
    "attention": (Attention, (4, 8)),
}


@pytest.fixture(params=MODELS)
def problem(request):
    """A network in double precision, its parameters, a batch of inputs and of targets."""
    torch.manual_seed(0)
    make, shape = MODELS[request.param]
    model = make().double()
    params = {name: p.detach() for name, p in model.named_parameters()}
    return model, params, torch.randn(6, *shape, dtype=torch.float64), torch.randint(3, (6,))


def loss_of(model):
    def loss(params, x, y):
        return F.cross_entropy(functional_call(model, params, (x[None],)), y[None])
    return loss


@pytest.mark.parametrize("chunk_size", [None, 1, 4])
def test_gradients_of_each_sample(problem, chunk_size):
    model, params, x, y = problem
    each = grad(loss_of(model))
    found = vmap(each, (None, 0, 0), chunk_size=chunk_size)(params, x, y)
    for i in range(len(x)):
        model.zero_grad()
        F.cross_entropy(model(x[i:i + 1]), y[i:i + 1]).backward()
        for name, p in model.named_parameters():
            torch.testing.assert_close(found[name][i], p.grad)


def test_jacobians_forward_and_backward(problem):
    model, _, x, _ = problem
    for kinds in ((jacfwd, jacrev), (lambda f: jacrev(f, chunk_size=2), jacrev)):
        forward, backward = (kind(lambda x: model(x[None])[0])(x[0]) for kind in kinds)
        torch.testing.assert_close(forward, backward)
    looped = torch.autograd.functional.jacobian(lambda x: model(x[None])[0], x[0])
    torch.testing.assert_close(forward, looped)


def test_hessians_and_their_products(problem):
    model, _, x, _ = problem

    def energy(x):
        return model(x[None]).logsumexp(-1).sum()
    whole = hessian(energy)(x[0])
    count = x[0].numel()
    torch.testing.assert_close(whole, jacrev(jacrev(energy))(x[0]))
    product = jvp(grad(energy), (x[0],), (x[1],))[1]
    torch.testing.assert_close(product.flatten(), whole.view(count, count) @ x[1].flatten())
    torch.testing.assert_close(vjp(grad(energy), x[0])[1](x[1])[0], product)
    torch.testing.assert_close(torch.autograd.functional.hvp(energy, x[0], x[1])[1], product)


def test_tangents_of_parameters(problem):
    model, params, x, y = problem
    tangents = {name: torch.randn_like(p) for name, p in params.items()}

    def loss(params):
        return F.cross_entropy(functional_call(model, params, (x,)), y)
    slope = jvp(loss, (params,), (tangents,))[1]
    gradients = grad(loss)(params)
    torch.testing.assert_close(slope, sum((gradients[n] * tangents[n]).sum() for n in params))
    with forward_ad.dual_level():
        duals = {n: forward_ad.make_dual(p, tangents[n]) for n, p in params.items()}
        torch.testing.assert_close(forward_ad.unpack_dual(loss(duals)).tangent, slope)


def test_ensembles(problem):
    model, _, x, _ = problem
    models = [model]
    for i in range(2):
        other = copy.deepcopy(model)
        for p in other.parameters():
            p.data.add_(0.1 * (i + 1))
        models.append(other)
    params, buffers = stack_module_state(models)
    found = vmap(lambda p, b: functional_call(model, (p, b), (x,)))(params, buffers)
    torch.testing.assert_close(found, torch.stack([m(x) for m in models]))


def test_writes_in_place_inside_vmap():
    x = torch.arange(6.0).view(3, 2)

    def run(row):
        out = torch.zeros_like(row)
        out[0] = row.sum()
        out[1:].add_(row[:1]).mul_(2)
        return out.clamp_(max=7)
    torch.testing.assert_close(vmap(run)(x), torch.stack([run(row) for row in x]))
