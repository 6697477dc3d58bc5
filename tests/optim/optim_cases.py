"""Runs of optimisers and schedulers, the same for PyTorch, which recorded them, and for flambeau.

Each function takes the torch-like module and gives lists of numbers.
"""

import warnings

SPARSE_ROWS = [[0, 2], [1, 2], [0, 1], [2, 3], [0, 3]]

OPTIMIZERS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1},
            {"momentum": 0.9, "nesterov": True, "maximize": True}],
    "Adam": [{}, {"amsgrad": True, "weight_decay": 0.1}, {"maximize": True, "betas": (0.8, 0.9)},
             {"decoupled_weight_decay": True, "weight_decay": 0.1}],
    "AdamW": [{}, {"amsgrad": True, "lr": 0.1}],
    "Adamax": [{}, {"weight_decay": 0.1, "maximize": True}],
    "NAdam": [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}],
    "Adadelta": [{}, {"weight_decay": 0.1, "rho": 0.8, "maximize": True}],
    "RMSprop": [{}, {"momentum": 0.9}, {"centered": True, "weight_decay": 0.1, "momentum": 0.5}],
    "Rprop": [{}, {"maximize": True, "etas": (0.4, 1.5), "step_sizes": (1e-5, 0.05)}],
    "ASGD": [{}, {"t0": 2, "lambd": 0.1, "weight_decay": 0.1}],
    "LBFGS": [{"max_iter": 4}, {"max_iter": 4, "line_search_fn": "strong_wolfe"},
              {"history_size": 2, "lr": 0.3, "max_iter": 5}],
    "Adafactor": [{}, {"weight_decay": 0.1, "lr": 0.5, "d": 2.0}, {"eps": (1e-3, 1e-2)}],
    "Muon": [{}, {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}],
    "SparseAdam": [{}, {"maximize": True}],
}

COMPLEX = ("SGD", "Adam", "RMSprop", "Adagrad", "NAdam", "Rprop", "ASGD", "LBFGS")


def optimizer_cases():
    """(key, name, options, dtype) of every run."""
    for name, choices in OPTIMIZERS.items():
        for i, options in enumerate(choices):
            dtypes = ["float64", "float32"] + ["complex128"] * (name in COMPLEX)
            if name in ("Muon", "SparseAdam"):
                dtypes = ["float32"]
            for dtype in dtypes:
                yield f"{name}-{i}-{dtype}", name, options, dtype


def start(torch, name, dtype):
    """The parameters before the first step."""
    shapes = [(3, 4), (4, 3)] if name == "Muon" else [(4, 3)] if name == "SparseAdam" else [
        (3, 4), (5,), ()]
    dtype = getattr(torch, dtype)
    params = []
    for i, shape in enumerate(shapes):
        n = 1
        for size in shape:
            n *= size
        values = torch.linspace(-1.0, 1.5, n, dtype=torch.float64).reshape(shape) + 0.1 * i
        if dtype.is_complex:
            values = values + 1j * (values.flip(0) if shape else values)
        params.append(torch.nn.Parameter(values.to(dtype)))
    return params


def loss_of(params):
    """A smooth loss with more than a quadratic in it."""
    total = 0.0
    for j, p in enumerate(params):
        if p.is_complex():
            total = total + ((p - 0.3).abs() ** 2).sum() * (j + 1)
        else:
            total = total + ((p - 0.3) ** 2).sum() * (j + 1) + (2 * p).sin().sum() * 0.1
    return total


def sparsify(torch, p, step):
    """Put a sparse gradient in place of the dense one."""
    rows = torch.tensor(SPARSE_ROWS[step % len(SPARSE_ROWS)])
    p.grad = torch.sparse_coo_tensor(rows[None], p.grad[rows], p.shape)


def trajectory(torch, name, options, dtype, steps=10):
    """All parameters, as numbers, after the steps 1 and 10."""
    params = start(torch, name, dtype)
    optimizer = getattr(torch.optim, name)(params, **options)
    snapshots = []
    for step in range(steps):

        def closure():
            optimizer.zero_grad()
            loss = loss_of(params)
            loss.backward()
            return loss

        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            if step % 3 == 2 and len(params) > 2:
                params[1].grad = None
            if name == "SparseAdam":
                sparsify(torch, params[0], step)
            optimizer.step()
        if step in (0, 9):
            snapshots.append([number for p in params for number in numbers(torch, p)])
    return snapshots


def numbers(torch, p):
    """The numbers in a tensor, complex ones as pairs."""
    p = p.detach()
    if p.is_complex():
        p = torch.view_as_real(p)
    return [float(x) for x in p.reshape(-1).double().tolist()]


SCHEDULERS = {
    "lambda": lambda s, o, **k: s.LambdaLR(o, [lambda e: e / 3 + 0.1, lambda e: 0.5], **k),
    "multiplicative": lambda s, o, **k: s.MultiplicativeLR(o, lambda e: 0.9 + e * 0.01, **k),
    "step": lambda s, o, **k: s.StepLR(o, 3, 0.5, **k),
    "multistep": lambda s, o, **k: s.MultiStepLR(o, [2, 2, 5, 9], 0.3, **k),
    "constant": lambda s, o, **k: s.ConstantLR(o, 0.25, 4, **k),
    "linear": lambda s, o, **k: s.LinearLR(o, 0.25, 0.8, 4, **k),
    "exponential": lambda s, o, **k: s.ExponentialLR(o, 0.9, **k),
    "cosine": lambda s, o, **k: s.CosineAnnealingLR(o, 5, 0.01, **k),
    "polynomial": lambda s, o, **k: s.PolynomialLR(o, 6, 2.0, **k),
    "cyclic": lambda s, o, **k: s.CyclicLR(o, 0.01, 0.1, 3, 5, "triangular2", **k),
    "cyclic range": lambda s, o, **k: s.CyclicLR(
        o, [0.01, 0.02], [0.1, 0.3], 2, 3, "exp_range", 0.95, **k),
    "cyclic function": lambda s, o, **k: s.CyclicLR(
        o, 0.01, 0.1, 3, scale_fn=lambda x: 0.8**x, scale_mode="iterations", **k),
    "restarts": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 3, **k),
    "longer restarts": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 2, 2, 0.001, **k),
    "one cycle": lambda s, o, **k: s.OneCycleLR(o, [0.5, 0.3], 38, **k),
    "one cycle, linear": lambda s, o, **k: s.OneCycleLR(
        o, 0.5, 40, pct_start=0.4, anneal_strategy="linear", **k),
    "one cycle, three phases": lambda s, o, **k: s.OneCycleLR(
        o, 0.5, epochs=5, steps_per_epoch=8, three_phase=True, **k),
    "swa": lambda s, o, **k: s.SWALR(o, 0.05, 4, **k),
    "swa, linear": lambda s, o, **k: s.SWALR(o, [0.05, 0.3], 3, "linear", **k),
    "sequential": lambda s, o, **k: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingLR(o, 6),
            s.ExponentialLR(o, 0.9)], [4, 9], **k),
    "sequential, restarts": lambda s, o, **k: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, total_iters=4), s.CosineAnnealingWarmRestarts(o, 3)], [4], **k),
    "chained": lambda s, o, **k: s.ChainedScheduler(
        [s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9), s.StepLR(o, 3)]),
    "plateau": lambda s, o, **k: s.ReduceLROnPlateau(
        o, factor=0.5, patience=2, cooldown=1, min_lr=[0.01, 0.001]),
    "plateau, max": lambda s, o, **k: s.ReduceLROnPlateau(
        o, "max", factor=0.5, patience=1, threshold=0.2, threshold_mode="abs"),
}

WAYS = {"fresh": {}, "adam": {"adam": True}, "resumed": {"last_epoch": 4}, "epochs": {
    "by_epoch": True}}


def scheduler_cases():
    """(key, name, way) of every run."""
    for name in SCHEDULERS:
        for way in WAYS:
            if way != "fresh" and name in ("chained", "sequential", "sequential, restarts"):
                continue
            if name.startswith("plateau") and way != "fresh":
                continue
            yield f"{name}/{way}", name, way


def schedule(torch, name, way, steps=30):
    """Learning rates and momenta of two groups at each step."""
    options = dict(WAYS[way])
    adam, by_epoch = options.pop("adam", False), options.pop("by_epoch", False)
    params = [torch.nn.Parameter(torch.ones(1)) for _ in range(2)]
    groups = [{"params": params[:1], "lr": 0.1}, {"params": params[1:], "lr": 0.02}]
    optimizer = torch.optim.Adam(groups) if adam else torch.optim.SGD(groups, momentum=0.9)
    if "last_epoch" in options:
        for group in optimizer.param_groups:
            group["initial_lr"] = 2 * group["lr"]
            group.update(max_lr=0.5, min_lr=1e-5, max_momentum=0.95, base_momentum=0.85)
    module = _Both(torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = SCHEDULERS[name](module, optimizer, **options)
        rows = [_row(scheduler, optimizer)]
        for i in range(steps):
            optimizer.step()
            if name.startswith("plateau"):
                scheduler.step([1, 0.5, 0.6, 0.55, 0.7, 0.4][i % 6] + 0.01 * i)
            elif by_epoch:
                scheduler.step((i * 7) % 30)
            else:
                scheduler.step()
            rows.append(_row(scheduler, optimizer))
    return rows


class _Both:
    """The schedulers of `lr_scheduler` and of `swa_utils`."""

    def __init__(self, torch):
        self.torch = torch

    def __getattr__(self, name):
        optim = self.torch.optim
        return getattr(optim.swa_utils if name == "SWALR" else optim.lr_scheduler, name)


def _row(scheduler, optimizer):
    row = []
    for group, lr in zip(optimizer.param_groups, scheduler.get_last_lr(), strict=True):
        assert float(lr) == float(group["lr"])
        row.append(float(lr))
        row.append(float(group["betas"][0] if "betas" in group else group["momentum"]))
    return row
