"""Has flambeau become slower than its last release? ``python benchmarks/check.py [--record]``.

Each row is a program on flambeau and one on NumPy that does work of the same kind. What counts is
the ratio of their processor times, on one thread, which is much the same on a busy and on an idle
machine. `released.json` holds the ratios of the last release; a row fails if it is more than
1.5 times as slow in each of three attempts, or 3 times on another kind of machine than the one that
is recorded. `--record` writes the file anew, for a release.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

if os.environ.setdefault("OMP_NUM_THREADS", "1") != "1" or "OPENBLAS_NUM_THREADS" not in os.environ:
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    os.execv(sys.executable, [sys.executable, *sys.argv])

import numpy as np
from limits import processor
from rows.training import training

import flambeau
from flambeau import func, kernels, nn, optim
from flambeau.nn import functional as F

RELEASED = Path(__file__).with_name("released.json")
MOST = 1.5        # times the released ratio
ELSEWHERE = 3.0   # on another kind of machine, where NumPy's times are others
TURN = 0.01       # seconds of a turn
TURNS = 7
ATTEMPTS = 3

random = np.random.RandomState(0)
ROWS = {}


def row(name, ours, numpy):
    ROWS[name] = ours, numpy


def array(*shape):
    return random.randn(*shape).astype("f4")


def calls(count):
    """Work of an interpreter: small calls of NumPy and a few objects."""
    a = array(4)

    def run():
        kept = {}
        for i in range(count):
            kept[i] = [np.add(a, a), i]

    return run


def small_calls():
    a, b, m = flambeau.ones(4), flambeau.ones(4), flambeau.ones(4, 4)
    x = flambeau.ones(4, requires_grad=True)
    work = calls(10)
    row("a + b", lambda: a + b, work)
    row("x * b, with a graph", lambda: x * b, work)
    row("m[1:3, ::2]", lambda: m[1:3, ::2], work)
    row("m.sum(dim=1)", lambda: m.sum(dim=1), work)
    row("cat of two", lambda: flambeau.cat([a, b]), work)
    row("tensor of a list", lambda: flambeau.tensor([[1.0, 2.0], [3.0, 4.0]]), work)
    row("sum and backward", lambda: (x * b).sum().backward(), work)
    y = flambeau.zeros(4, dtype=flambeau.long)
    row("cross_entropy of 4 x 4", lambda: F.cross_entropy(m, y), work)
    layer, v = nn.Linear(4, 4), flambeau.ones(1, 4)
    row("a linear layer", lambda: layer(v), work)
    row("making a linear layer", lambda: nn.Linear(4, 4), work)


def large_calls():
    a, b = array(512, 512), array(512, 512)
    x, y = flambeau.from_numpy(a), flambeau.from_numpy(b)
    row("add, 512 x 512", lambda: x + y, lambda: a + b)
    row("exp, 512 x 512", lambda: x.exp(), lambda: np.exp(a))
    row("sum of rows, 512 x 512", lambda: x.sum(1), lambda: a.sum(1))
    row("softmax, 512 x 512", lambda: x.softmax(1), lambda: np.exp(a))
    row("transposed copy, 512 x 512", lambda: x.t().contiguous(), lambda: np.ascontiguousarray(a.T))
    row("product, 256 x 256", lambda: x[:256, :256] @ y[:256, :256],
        lambda: a[:256, :256] @ b[:256, :256])
    i = random.randint(0, 512, 512)
    j = flambeau.from_numpy(i)
    row("rows by indices", lambda: x[j], lambda: a[i])
    image, weight = flambeau.randn(4, 16, 32, 32), flambeau.randn(16, 16, 3, 3)
    c, d = array(16, 144), array(144, 4096)
    row("conv2d, 3 x 3", lambda: F.conv2d(image, weight, padding=1), lambda: c @ d)


def programs():
    net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    step = training(flambeau, net, optim.Adam(net.parameters()), flambeau.randn(32, 64),
                    flambeau.randint(10, (32,)))
    row("a step of training a perceptron", step, calls(200))
    lstm, x = nn.LSTM(16, 32), flambeau.randn(20, 4, 16)
    row("an LSTM, forward and backward", lambda: lstm(x)[0].sum().backward(), calls(200))
    params = [nn.Parameter(flambeau.randn(32, 32)) for _ in range(50)]
    for p in params:
        p.grad = flambeau.randn(32, 32)
    for name in ("SGD", "Adam", "RMSprop"):
        step = getattr(optim, name)(params, lr=1e-3).step
        row(f"a step of {name}, 50 parameters", step, calls(50))
    row("clip_grad_norm_, 50 parameters", lambda: nn.utils.clip_grad_norm_(params, 1.0), calls(50))
    w, v = flambeau.randn(8, 8), flambeau.randn(8)
    row("a Hessian", lambda: func.hessian(lambda v: flambeau.tanh(w @ v).sum())(v), calls(200))
    xs = flambeau.randn(32, 8)
    each = func.vmap(func.grad(lambda x: flambeau.tanh(w @ x).sum()))
    row("a gradient for each sample", lambda: each(xs), calls(200))
    state = net.state_dict()
    row("load_state_dict", lambda: net.load_state_dict(state), calls(50))


def machine():
    """The kind of machine: its processor and the vectors that the kernels use."""
    return f"{processor()}, {kernels.describe().get('simd')}"


def seconds(run, number):
    start = time.process_time()
    for _ in range(number):
        run()
    return (time.process_time() - start) / number


def number_of_calls(run):
    run()
    return max(1, int(TURN / max(seconds(run, 3), 1e-7)))


def ratio_of(name):
    """The ratio of the fastest turns of the two programs, which take turns."""
    numbers = [number_of_calls(run) for run in ROWS[name]]
    best = [min(times) for times in zip(*(
        [seconds(run, number) for run, number in zip(ROWS[name], numbers, strict=True)]
        for _ in range(TURNS)), strict=True)]
    return best[0] / best[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the ratios of a release")
    options = parser.parse_args()
    for make in (small_calls, large_calls, programs):
        make()
    if options.record:
        found = {name: min(ratio_of(name) for _ in range(ATTEMPTS)) for name in ROWS}
        ratios = {name: round(ratio, 4) for name, ratio in found.items()}
        RELEASED.write_text(
            json.dumps({"machine": machine(), "ratios": ratios}, indent=1) + "\n")
        return
    recorded = json.loads(RELEASED.read_text())
    released, most = recorded["ratios"], MOST
    if recorded["machine"] != machine():
        most = ELSEWHERE
        print(f"recorded on {recorded['machine']}, not on {machine()}: only rows that are {most} "
              "times as slow fail")
    slower, found = list(ROWS), {}
    for _ in range(ATTEMPTS):
        for name in slower:
            found[name] = min(found.get(name, np.inf), ratio_of(name))
        slower = [name for name in slower
                  if name in released and found[name] > most * released[name]]
    print(f"{'row':36} {'ratio to NumPy':>15} {'released':>10}")
    for name in ROWS:
        was = f"{released[name]:10.2f}" if name in released else "       new"
        print(f"{name:36} {found[name]:15.2f} {was}{'  slower' if name in slower else ''}")
    if slower:
        raise SystemExit(f"more than {most} times as slow as the last release: {', '.join(slower)}")


if __name__ == "__main__":
    main()
