"""Record PyTorch's random numbers: ``python record_random.py`` with PyTorch installed.

Writes random_streams.json: for each case, the seed, what was called, the first numbers, a digest of
all bytes of the result, and a digest of the generator's state afterwards. The dtype bfloat16 goes
by its bits.
"""

import hashlib
import json
from pathlib import Path

import torch

torch.set_num_threads(2)
FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["int64", "int32", "int16", "int8", "uint8", "bool"]
SIZES = [1, 15, 16, 17, 31, 32, 1000]

FILLS = [
    ("uniform_", [(), (-0.3, 1.77), (-2.1, -1.3), (1, 1 + 2**-22)], FLOATS),
    ("normal_", [(), (0.3, 1.7)], FLOATS),
    ("log_normal_", [(1, 2), (0.3, 0.7)], FLOATS),
    ("cauchy_", [(), (0.3, 1.7)], FLOATS),
    ("exponential_", [(), (0.3,), (float("inf"),)], FLOATS),
    ("geometric_", [(0.3,), (0.01,)], [*FLOATS, "int64", "uint8"]),
    ("bernoulli_", [(0.0,), (0.3,), (0.5,), (1.0,)], [*FLOATS, *INTS]),
    ("random_", [()], [*FLOATS, *INTS]),
    ("random_", [(0, 2)], [*FLOATS, *INTS]),
    ("random_", [(-5, 100)], ["float32", "float64", "int64", "int32", "int8"]),
    ("random_", [(0, 2**28 - 1), (0, 2**28), (-(2**30), 2**30)], ["int64", "int32", "float64"]),
    ("random_", [(0, 2**40), (-(2**62), 2**62), (-(2**63), 2**63 - 1)], ["int64"]),
    ("random_", [(-7, None), (-(2**63), None)], ["int64"]),
]


def digest(tensor):
    data = tensor.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def bits(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16)
    return tensor


def outcome(result):
    return {
        "first": bits(result).contiguous().view(-1)[:3].tolist(),
        "digest": digest(result),
        "state": digest(torch.get_rng_state()),
    }


def empty(n, dtype, layout):
    if layout == "strided":
        return torch.empty(n, 2, dtype=dtype)[:, 1]
    if layout == "transposed":
        return torch.empty(2, n // 2, dtype=dtype).t()
    return torch.empty(n, dtype=dtype)


def fills():
    for name, arguments, dtypes in FILLS:
        for args in arguments:
            for dtype in dtypes:
                for n in SIZES:
                    for layout in ("plain", "strided", "transposed"):
                        if layout != "plain" and n not in (16, 1000):
                            continue
                        seed = (n * 7919 + len(dtype)) % 1000003 + (n % 2) * 2**40
                        torch.manual_seed(seed)
                        torch.empty(n % 3).normal_()  # sometimes a normal number is kept
                        result = getattr(empty(n, getattr(torch, dtype), layout), name)(*args)
                        yield {"call": name, "args": args, "dtype": dtype, "n": n,
                               "layout": layout, "seed": seed, **outcome(result)}  # fmt: skip


def samplers():
    def case(seed, call, result, **what):
        return {"call": call, "seed": seed, **what, **outcome(result)}

    for n in (0, 1, 2, 17, 1000, 5000):
        torch.manual_seed(n)
        yield case(n, "permutation", torch.randperm(n), n=n)
    for dtype in FLOATS:
        kind = getattr(torch, dtype)
        for rate in (0.0, 0.5, 3.0, 9.75, 10.0, 11.75, 1000.0, 50000.0):
            torch.manual_seed(3)
            result = torch.poisson(torch.full((500,), rate, dtype=kind))
            yield case(3, "poisson", result, dtype=dtype, parameter=rate, n=500)
        p = torch.linspace(0, 1, 700, dtype=torch.float64).to(kind)
        torch.manual_seed(4)
        yield case(4, "bernoulli_each", torch.bernoulli(p), dtype=dtype, n=700)
        for columns, n, replacement in (
            (17, 1, False), (17, 1, True), (17, 5, False), (17, 500, True), (300, 20, False),
            (300, 50, True),
        ):  # fmt: skip
            if dtype in ("float16", "bfloat16") and n > 1 and not replacement:
                continue  # equal quotients, in an order that depends on the sort
            weights = (1 + torch.arange(4 * columns) % 13).view(4, columns).to(kind)
            torch.manual_seed(5)
            result = torch.multinomial(weights, n, replacement)
            yield case(5, "multinomial", result, dtype=dtype, columns=columns, n=n,
                       replacement=replacement)  # fmt: skip
    for dtype in ("float32", "float64"):
        kind = getattr(torch, dtype)
        for alpha in (0.0, 0.001, 0.5, 1.0, 1.5, 4.0, 1e4):
            torch.manual_seed(6)
            result = torch._standard_gamma(torch.full((501,), alpha, dtype=kind))
            yield case(6, "standard_gamma", result, dtype=dtype, parameter=alpha, n=501)
        for count in (0, 1, 5, 33, 1000, 10**6):
            for p in (0.0, 0.001, 0.3, 0.5, 0.95, 1.0):
                torch.manual_seed(7)
                sizes = torch.full((300,), count, dtype=kind)
                result = torch.binomial(sizes, torch.full_like(sizes, p))
                yield case(7, "binomial", result, dtype=dtype, count=count, p=p, n=300)
        torch.manual_seed(8)
        x = torch.linspace(-1, 1, 50, dtype=kind)
        noise = torch.empty_like(x)
        torch._C._nn.rrelu_with_noise(x, noise, 1 / 8, 1 / 3, True)
        yield case(8, "rrelu_slopes", noise, dtype=dtype, n=50)


def states():
    """States as get_rng_state gives them, by digest: after a seed, some draws, a kept normal."""
    for seed in (0, 1, 2**32 - 1, 2**40 + 5, 2**64 - 1):
        for draws in (0, 1, 623, 624, 625, 2000):
            torch.manual_seed(seed)
            torch.empty(draws).uniform_()
            if draws % 2:
                torch.empty(1).normal_()
            state = torch.get_rng_state()
            raw = torch.empty(4, dtype=torch.int64).random_()
            yield {"seed": seed, "draws": draws, "state": digest(state), "next": raw.tolist()}


if __name__ == "__main__":
    record = {"fills": list(fills()), "samplers": list(samplers()), "states": list(states())}
    compact = json.JSONEncoder(separators=(",", ":")).encode
    parts = (f"{compact(key)}:[\n" + ",\n".join(map(compact, cases)) + "]"
             for key, cases in record.items())  # fmt: skip
    text = ",\n".join(parts)
    Path(__file__).with_name("random_streams.json").write_text("{" + text + "}\n")
