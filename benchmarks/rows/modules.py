"""Modules: making them, calling them, hooks, and their state."""

import copy

from .registry import row


def perceptron(torch, width=32, depth=4):
    nn = torch.nn
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def encoder(torch, layers=2):
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def convolutional(torch):
    nn = torch.nn
    return nn.Sequential(*(layer for _ in range(6) for layer in (
        nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())))


MODELS = {"perceptron": perceptron, "transformer": encoder, "convolutional network": convolutional}

for _name, _make in MODELS.items():

    @row("modules", f"making a {_name}")
    def _construct(torch, make=_make):
        return lambda: make(torch)

    @row("modules", f"state_dict of a {_name}")
    def _state(torch, make=_make):
        return make(torch).state_dict

    @row("modules", f"load_state_dict of a {_name}")
    def _load(torch, make=_make):
        model = make(torch)
        state = model.state_dict()
        return lambda: model.load_state_dict(state)

    @row("modules", f"deepcopy of a {_name}")
    def _copy(torch, make=_make):
        model = make(torch)
        return lambda: copy.deepcopy(model)

    @row("modules", f"train and eval, to a dtype, parameters of a {_name}")
    def _walk(torch, make=_make):
        model = make(torch)

        def run():
            model.train()
            model.eval()
            model.to(torch.float32)
            model.zero_grad()
            return sum(p.numel() for p in model.parameters()) + len(list(model.modules()))

        return run


@row("modules", "making Linear(256, 256)")
def _linear(torch):
    return lambda: torch.nn.Linear(256, 256)


@row("modules", "making Embedding(10000, 64)")
def _embedding(torch):
    return lambda: torch.nn.Embedding(10000, 64)


@row("modules", "making Linear on meta")
def _meta(torch):
    return lambda: torch.nn.Linear(256, 256, device="meta")


def step_with(torch, model, x):
    def run():
        model.zero_grad()
        model(x).sum().backward()

    return run


@row("modules", "forward and backward of a small perceptron, no hooks")
def _plain(torch):
    return step_with(torch, perceptron(torch), torch.randn(8, 32))


@row("modules", "forward hooks")
def _forward_hooks(torch):
    model, seen = perceptron(torch), {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda m, i, o, name=name: seen.__setitem__(name, o.detach()))
    x = torch.randn(8, 32)
    return lambda: model(x)


@row("modules", "forward pre-hooks with kwargs")
def _pre_hooks(torch):
    model = perceptron(torch)
    for module in model.modules():
        module.register_forward_pre_hook(lambda m, args, kwargs: None, with_kwargs=True)
    x = torch.randn(8, 32)
    return lambda: model(x)


@row("modules", "full backward hooks")
def _backward_hooks(torch):
    model, seen = perceptron(torch), {}
    for name, module in model.named_modules():
        module.register_full_backward_hook(
            lambda m, gi, go, name=name: seen.__setitem__(name, go[0]))
    return step_with(torch, model, torch.randn(8, 32))


@row("modules", "full backward pre-hooks")
def _backward_pre_hooks(torch):
    model = perceptron(torch)
    for module in model:
        module.register_full_backward_pre_hook(lambda m, go: None)
    return step_with(torch, model, torch.randn(8, 32))


@row("modules", "hooks on tensors")
def _tensor_hooks(torch):
    model = perceptron(torch)
    for p in model.parameters():
        p.register_hook(lambda g: g)
    return step_with(torch, model, torch.randn(8, 32))


@row("modules", "hooks after accumulation")
def _accumulate_hooks(torch):
    model = perceptron(torch)
    for p in model.parameters():
        p.register_post_accumulate_grad_hook(lambda p: None)
    return step_with(torch, model, torch.randn(8, 32))


@row("modules", "hooks of saved tensors that keep copies")
def _saved_hooks(torch):
    model, graph = perceptron(torch), torch.autograd.graph
    step = step_with(torch, model, torch.randn(8, 32))

    def run():
        with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            return step()

    return run


@row("modules", "saved tensors in memory of the processor")
def _save_on_cpu(torch):
    model = perceptron(torch)
    step = step_with(torch, model, torch.randn(8, 32))

    def run():
        with torch.autograd.graph.save_on_cpu():
            return step()

    return run


@row("modules", "a weight kept symmetric by a parametrization, forward and backward")
def _parametrized(torch):
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

    model = torch.nn.Linear(32, 32)
    torch.nn.utils.parametrize.register_parametrization(model, "weight", Symmetric())
    return step_with(torch, model, torch.randn(8, 32))


@row("modules", "optimizers that step inside backward, 10 parameters")
def _step_in_backward(torch):
    weights = [torch.nn.Parameter(torch.randn(32, 32) / 6) for _ in range(10)]
    for w in weights:
        def step(p, optimizer=torch.optim.SGD([w], 0.01, 0.9)):
            optimizer.step()
            optimizer.zero_grad()
        w.register_post_accumulate_grad_hook(step)
    x = torch.randn(8, 32)

    def run():
        h = x
        for w in weights:
            h = (h @ w).tanh()
        h.pow(2).mean().backward()

    return run


@row("modules", "weight_norm, forward and backward")
def _weight_norm(torch):
    model = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(64, 64))
    return step_with(torch, model, torch.randn(16, 64))


@row("modules", "spectral_norm, forward and backward")
def _spectral_norm(torch):
    model = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(64, 64))
    return step_with(torch, model, torch.randn(16, 64))


@row("modules", "a checkpointed perceptron")
def _checkpointed(torch):
    from importlib import import_module
    checkpoint = import_module(torch.__name__ + ".utils.checkpoint").checkpoint
    model = perceptron(torch)
    x = torch.randn(8, 32, requires_grad=True)
    return lambda: checkpoint(model, x, use_reentrant=False).sum().backward()


@row("modules", "a custom autograd.Function in a chain of 20")
def _function(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            return 2 * x * g

    x = torch.full((16,), 0.9, requires_grad=True)

    def run():
        y = x
        for _ in range(20):
            y = Square.apply(y)
        y.sum().backward()

    return run


@row("modules", "gradients that accumulate over 8 small batches")
def _accumulate(torch):
    model = perceptron(torch)
    batches = torch.randn(8, 8, 32).unbind(0)

    def run():
        model.zero_grad()
        for x in batches:
            model(x).sum().backward()

    return run


@row("modules", "gradients that accumulate into 3 large parameters")
def _accumulate_large(torch):
    layers = [torch.nn.Linear(1024, 1024) for _ in range(3)]
    x = torch.randn(4, 1024)
    for layer in layers:
        layer(x).sum().backward()

    def run():
        for layer in layers:
            layer(x).sum().backward()

    return run


@row("modules", "parameters_to_vector and back")
def _vector(torch):
    model, utils = perceptron(torch), torch.nn.utils

    def run():
        utils.vector_to_parameters(utils.parameters_to_vector(model.parameters()),
                                   model.parameters())

    return run
