"""Steps of optimizers over few large and many small parameters, and what goes with them."""

from .registry import row

SIZES = {"3 large": [(1024, 1024), (1024, 512), (512, 512)], "200 small": [(32, 32), (32,)] * 100}
STEPS = {
    "Adam": {}, "AdamW": {"amsgrad": True}, "SGD": {"lr": 0.01, "momentum": 0.9}, "RMSprop": {},
    "Adagrad": {}, "Adadelta": {}, "Adamax": {}, "NAdam": {}, "RAdam": {}, "ASGD": {}, "Rprop": {},
    "Adafactor": {},
}  # fmt: skip
MORE = {"SGD": {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-4},
        "RMSprop": {"momentum": 0.9, "centered": True, "weight_decay": 1e-4},
        "Adam": {"weight_decay": 0.1, "maximize": True},
        "NAdam": {"weight_decay": 0.1, "decoupled_weight_decay": True}}


def parameters(torch, shapes):
    params = [torch.nn.Parameter(torch.randn(*shape)) for shape in shapes]
    for p in params:
        p.grad = torch.randn_like(p)
    return params


def step_of(name, shapes, **options):
    return lambda torch: getattr(torch.optim, name)(parameters(torch, shapes), **options).step


for _size, _shapes in SIZES.items():
    for _table in (STEPS, MORE):
        for _name, _options in _table.items():
            _said = "".join(f", {k}" for k in _options if k != "lr")
            row("optimizers", f"{_name}{_said}, {_size} parameters")(
                step_of(_name, _shapes, **_options))

    @row("optimizers", f"clip_grad_norm_, {_size} parameters")
    def _clip_norm(torch, shapes=_shapes):
        params = parameters(torch, shapes)
        return lambda: torch.nn.utils.clip_grad_norm_(params, 1.0)

    @row("optimizers", f"clip_grad_value_, {_size} parameters")
    def _clip_value(torch, shapes=_shapes):
        params = parameters(torch, shapes)
        return lambda: torch.nn.utils.clip_grad_value_(params, 1.0)

    @row("optimizers", f"zero_grad(set_to_none=False), {_size} parameters")
    def _zero(torch, shapes=_shapes):
        optimizer = torch.optim.SGD(parameters(torch, shapes), lr=0.1)
        return lambda: optimizer.zero_grad(set_to_none=False)

    @row("optimizers", f"GradScaler's unscale, step and update, {_size} parameters")
    def _scaler(torch, shapes=_shapes):
        optimizer = torch.optim.SGD(parameters(torch, shapes), lr=1e-4)
        scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
        scaler.scale(torch.zeros(()))

        def run():
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()

        return run

    @row("optimizers", f"an EMA of the weights, {_size} parameters")
    def _ema(torch, shapes=_shapes):
        swa = torch.optim.swa_utils
        model = torch.nn.ParameterList(parameters(torch, shapes))
        averaged = swa.AveragedModel(model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.99))
        return lambda: averaged.update_parameters(model)

    @row("optimizers", f"an EMA of the weights in a loop, {_size} parameters")
    def _ema_loop(torch, shapes=_shapes):
        model, kept = parameters(torch, shapes), [p.detach() for p in parameters(torch, shapes)]

        def run():
            with torch.no_grad():
                for k, p in zip(kept, model, strict=True):
                    k.lerp_(p, 0.01)

        return run


@row("optimizers", "LBFGS on a regression")
def _lbfgs(torch):
    x, y = torch.randn(200, 20), torch.randn(200)

    def run():
        w = torch.zeros(20, requires_grad=True)
        optimizer = torch.optim.LBFGS([w], max_iter=10, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            return loss

        optimizer.step(closure)

    return run


for _name, _options in (("StepLR", {"step_size": 10}), ("CosineAnnealingLR", {"T_max": 50}),
                        ("OneCycleLR", {"max_lr": 0.1, "total_steps": 10**9}),
                        ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}),
                        ("CosineAnnealingWarmRestarts", {"T_0": 10})):  # fmt: skip

    @row("optimizers", f"a step of {_name}")
    def _schedule(torch, name=_name, options=_options):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
        optimizer.step()
        return getattr(torch.optim.lr_scheduler, name)(optimizer, **options).step


@row("optimizers", "a step by hand, 20 parameters")
def _by_hand(torch):
    params = parameters(torch, [(16, 16), (16,)] * 10)

    def run():
        with torch.no_grad():
            for p in params:
                p -= 0.001 * p.grad

    return run


@row("optimizers", "state_dict and load_state_dict of Adam, 40 parameters")
def _state(torch):
    optimizer = torch.optim.Adam(parameters(torch, [(16, 16), (16,)] * 20))
    optimizer.step()
    return lambda: optimizer.load_state_dict(optimizer.state_dict())
