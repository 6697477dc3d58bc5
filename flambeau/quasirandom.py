"""Sobol' sequences: points that fill the unit cube more evenly than random ones."""
from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

import numpy as np

import flambeau
from flambeau.core.tensor import Tensor

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of a Sobol' sequence in [0, 1)ᵈ, in Gray-code order, of 30 bits each.

    With `scramble`, the directions are multiplied by random lower-triangular bit matrices and the
    points shifted by random bits (Owen's scrambling in the linear form of Matoušek, 1998); the
    bits come from a generator of their own with `seed`. Direction numbers: Joe and Kuo,
    "Constructing Sobol sequences with better two-dimensional projections", 2008.

    ValueError for a dimension outside 1 … 21201. More than 2048 need SciPy, which has the numbers:
    NotImplementedError where it is not installed.

    >>> import flambeau
    >>> flambeau.quasirandom.SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError("Supported range of dimensionality for SobolEngine is "
                             f"[1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = flambeau.from_numpy(directions(dimension, self.MAXBIT))
        self.shift = flambeau.zeros(dimension, dtype=flambeau.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = flambeau.Generator()
        if self.seed is None:
            generator.seed()
        else:
            generator.manual_seed(self.seed)
        d, bits = self.dimension, self.MAXBIT
        shift = flambeau.randint(2, (d, bits), generator=generator)
        self.shift = flambeau.mv(shift, 2 ** flambeau.arange(bits))
        lower = flambeau.randint(2, (d, bits, bits), generator=generator).tril().numpy()
        lower[:, np.arange(bits), np.arange(bits)] = 1
        weights = 1 << np.arange(bits - 1, -1, -1)              # the highest bit first
        digits = (self.sobolstate.numpy()[:, None, :] // weights[:, None]) % 2
        self.sobolstate = flambeau.from_numpy(weights @ (lower @ digits % 2))

    def draw(self, n: int = 1, out: Tensor | None = None,
             dtype: flambeau.dtype | None = None) -> Tensor:
        """The next `n` points, (n, dimension), in `dtype` (the default type where it is None)."""
        points = self._advance(n) * 2.0 ** -self.MAXBIT
        result = flambeau.from_numpy(points).to(dtype or flambeau.get_default_dtype())
        if out is None:
            return result
        return out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None,
                   dtype: flambeau.dtype | None = None) -> Tensor:
        """The next 2ᵐ points: where the sequence is at its best. ValueError if, with those drawn
        before, they are not a power of two in all."""
        n = 2 ** m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead.")
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points."""
        if isinstance(n, Tensor):
            raise TypeError("_sobol_engine_ff_(): argument 'n' (position 2) must be int, not "
                            "Tensor")
        if not self.num_generated:
            n - 1                               # the first point is there already
        first = max(self.num_generated, 1)
        gray = [i ^ i >> 1 for i in (first - 1, self.num_generated + n - 1)]
        changed = gray[0] ^ gray[1]             # the directions added an odd number of times
        quasi, state = self.quasi.numpy(), self.sobolstate.numpy()
        for bit in range(changed.bit_length()):
            if changed >> bit & 1:
                quasi ^= state[:, bit]
        self.num_generated += n
        return self

    def _advance(self, n: int) -> np.ndarray:
        """The next `n` points as integers. Each is the one before, with one direction added: that
        of the lowest 0 in the number of the one before."""
        start = self.num_generated
        first = max(start, 1) - 1
        before = np.arange(first, start + n - 1)
        lowest = np.log2(~before & (before + 1)).astype(np.int64)
        steps = self.sobolstate.numpy()[:, lowest].T
        quasi = self.quasi.numpy()
        points = np.bitwise_xor.accumulate(np.vstack([quasi[None], steps]), 0)
        quasi[:] = points[-1]
        self.num_generated += n
        return points[:n] if start == 0 else points[1:]

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}"]
        if self.scramble:
            parts.append("scramble=True")
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(parts)})"


def _numbers(dimension: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each dimension: the polynomial, its degree, and the initial numbers (of which there are as
    many as the degree says)."""
    own = _own_numbers()
    numbers = own if dimension <= len(own[0]) else _all_numbers()
    polynomials, degrees, initial = (x[:dimension] for x in numbers)
    return polynomials, degrees, initial


@functools.cache
def _all_numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Those of all dimensions, from SciPy's file of the same numbers."""
    found = importlib.util.find_spec("scipy")
    source = Path((found and found.origin) or "").parent / "stats/_sobol_direction_numbers.npz"
    if found is None or not source.exists():
        most = len(_own_numbers()[0])
        raise NotImplementedError(
            f"Sobol sequences of more than {most} dimensions take their direction numbers from "
            "SciPy, which is not installed: pip install 'flambeau[scipy]'")
    with np.load(source) as stored:
        polynomials, initial = stored["poly"].astype(np.int64), stored["vinit"].astype(np.int64)
    return polynomials, np.log2(polynomials).astype(np.int64), initial


@functools.cache
def _own_numbers() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Those of the first dimensions, which come with flambeau; see
    scripts/make_sobol_directions.py."""
    with np.load(Path(__file__).with_name("sobol_directions.npz")) as stored:
        polynomials = np.cumsum(stored["polynomials"], dtype=np.int64)
        bits, at = np.unpackbits(stored["initial"]), 0
    degrees = np.log2(polynomials).astype(np.int64)
    initial = np.ones((len(polynomials), int(degrees.max())), np.int64)
    for k in range(1, initial.shape[1]):
        having = np.flatnonzero(degrees > k)
        digits = bits[at:at + k * len(having)].reshape(-1, k).astype(np.int64)
        initial[having, k] += 2 * (digits << np.arange(k)).sum(1)
        at += k * len(having)
    return polynomials, degrees, initial


def directions(dimension: int, bits: int) -> np.ndarray:
    """The direction numbers as integers of `bits` bits, (dimension, bits)."""
    polynomials, degrees, initial = _numbers(dimension)
    found = np.ones((dimension, bits), np.int64)
    for degree in range(1, int(degrees.max()) + 1):
        chosen = np.flatnonzero(degrees == degree)
        v, p = found[chosen], polynomials[chosen]
        known = min(degree, bits)
        v[:, :known] = initial[chosen, :known]
        for j in range(degree, bits):           # the recurrence that the polynomial stands for
            v[:, j] = v[:, j - degree]
            for k in range(degree):
                v[:, j] ^= (p >> (degree - 1 - k) & 1) * (v[:, j - k - 1] << (k + 1))
        found[chosen] = v
    return found << np.arange(bits - 1, -1, -1)
