"""PyTorch's CPU random streams: the state of a generator, and arrays filled from it.

Each function takes a `Stream`, advances it by as many draws as PyTorch's generator would make, and
fills `out` with the numbers that PyTorch gives for that seed, whatever the machine and the number
of threads. Elements are visited in the order in which they lie in memory.

Numbers are float32 or float64 at heart: float16 and bfloat16 are rounded from float32, integers
converted from float64.
"""

import math

import numpy as np

from flambeau import kernels

__all__ = ["Stream", "bernoulli", "bernoulli_each", "binomial", "cauchy", "digits", "dirichlet",
           "dropout_mask", "exponential", "geometric", "integers", "log_normal", "multinomial",
           "normal", "permutation", "poisson", "random", "rrelu_slopes", "standard_gamma",
           "uniform"]

STATE_BYTES = 5056
_WORDS = 624
_DEFAULT_SEED = 67280421310721
_LOWEST = -1 << 63
_FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


def _compiled_or_reference(name):
    native = getattr(kernels._native, "random_" + name, None)
    if native is not None:
        return native
    from flambeau.kernels.creation import random_reference
    return kernels.quiet(getattr(random_reference, name))


_seed = _compiled_or_reference("seed")
_raw = _compiled_or_reference("raw")
_uniform = _compiled_or_reference("uniform")
_normal_blocks = _compiled_or_reference("normal_blocks")
_normal_pairs = _compiled_or_reference("normal_pairs")
_bernoulli = _compiled_or_reference("bernoulli")
_integers = _compiled_or_reference("integers")
_permutation = _compiled_or_reference("permutation")
_log_normal = _compiled_or_reference("log_normal")
_cauchy = _compiled_or_reference("cauchy")
_exponential = _compiled_or_reference("exponential")
_geometric = _compiled_or_reference("geometric")
_poisson = _compiled_or_reference("poisson")
_gamma = _compiled_or_reference("gamma")
_binomial = _compiled_or_reference("binomial")


class Stream:
    """The state of one generator: a Mersenne Twister and a normal number kept for later.

    `words` holds the twister's 624 words, how many of them are used up (0 on a fresh seed), a flag
    that a normal number is kept, and that number, as a float64 in two words.
    """

    __slots__ = ("_seed", "words")

    def __init__(self, seed=_DEFAULT_SEED):
        self.seed(seed)

    def seed(self, seed):
        """Start over from a 64-bit `seed`, of which the twister sees the lower half."""
        words = np.zeros(_WORDS + 4, np.uint32)
        _seed(words, seed & 0xFFFFFFFF)
        self._seed, self.words = seed, words

    def initial_seed(self):
        """The seed that this stream started from."""
        return self._seed

    def get_state(self):
        """The state in the bytes in which PyTorch writes it."""
        state = np.zeros(STATE_BYTES, np.uint8)
        used = int(self.words[_WORDS])
        state[:8] = np.frombuffer(self._seed.to_bytes(8, "little"), np.uint8)
        state[8:16].view("<i4")[:] = (_WORDS + 1 - used if used else 1), 1
        state[16:24].view("<u8")[0] = used
        state[24:5016].view("<u8")[:] = self.words[:_WORDS]
        kept = int(self.words[_WORDS + 1])
        if kept:
            state[5024:5032].view("<f8")[0] = self.words[_WORDS + 2 :].view(np.float64)[0]
        state[5040:5044].view("<i4")[0] = kept
        return state

    def set_state(self, state):
        """Continue from what `get_state` gave."""
        state = np.ascontiguousarray(state, np.uint8)
        words = np.zeros_like(self.words)
        words[:_WORDS] = state[24:5016].view("<u8")
        words[_WORDS] = state[16:24].view("<u8")[0]
        if state[5040:5044].view("<i4")[0]:
            words[_WORDS + 1] = 1
            words[_WORDS + 2 :].view(np.float64)[0] = state[5024:5032].view("<f8")[0]
        self._seed = int.from_bytes(state[:8].tobytes(), "little")
        self.words = words

    def copy(self):
        """Another stream that will give the same numbers."""
        twin = Stream.__new__(Stream)
        twin._seed, twin.words = self._seed, self.words.copy()
        return twin

    def raw32(self, n):
        """The next `n` draws of 32 bits."""
        out = np.empty(n, np.uint32)
        _raw(self.words, out)
        return out

    def raw64(self, n):
        """The next `n` numbers of 64 bits: two draws each, the upper half first."""
        out = np.empty(n, np.uint64)
        _raw(self.words, out)
        return out


def in_memory_order(array):
    """`array` with its dimensions permuted so that the elements are visited as they lie."""
    if array.flags.c_contiguous:
        return array
    strides = array.strides
    return array.transpose(sorted(range(array.ndim), key=lambda dim: -strides[dim]))


def _fill(out, dtype, kernel, stream, *args):
    """Fill `out` by a kernel that writes contiguous arrays of `dtype`."""
    own = out.dtype
    if (own is dtype or own == dtype) and out.flags.c_contiguous:
        kernel(stream.words, out if out.ndim == 1 else out.reshape(-1), *args)
        return out
    numbers = np.empty(out.size, dtype)
    kernel(stream.words, numbers, *args)
    if dtype == np.float64 and _compute_dtype(out.dtype) == np.float32:  # rounded in two steps
        numbers = numbers.astype(np.float32)
    view = in_memory_order(out)
    if numbers.dtype.kind == "i" and own.kind == "f":  # never a warning
        view[...] = numbers.reshape(view.shape)
    else:
        _assign(view, numbers.reshape(view.shape))
    return out


@kernels.quiet
def _assign(out, values):
    out[...] = values


def _compute_dtype(dtype):
    """The dtype in which numbers for `dtype` are computed."""
    if dtype in _FLOATS:
        return dtype
    return np.dtype(np.float64 if dtype.kind in "iub" else np.float32)


def uniform(stream, out, low=0.0, high=1.0):
    """Uniform numbers in [low, high).

    A number that was rounded up to `high` is replaced by `low`.
    """
    if out.dtype in _FLOATS:
        return _fill(out, out.dtype, _uniform, stream, low, high)
    # float16 and bfloat16: bounds are those of float32, and `high` is met again after rounding
    numbers = np.empty(out.size, np.float32)
    _uniform(stream.words, numbers, low, high)
    rounded = numbers.astype(out.dtype)
    rounded[rounded == np.float32(high).astype(out.dtype)] = low
    view = in_memory_order(out)
    view[...] = rounded.reshape(view.shape)
    return out


def normal(stream, out, mean=0.0, std=1.0):
    """Normal numbers.

    Contiguous arrays of 16 and more are drawn in blocks of 16: eight uniform numbers give the
    radii, eight the angles, in the array's own precision. All others are drawn in pairs in float64,
    of which the second may be kept for the next call.
    """
    if out.size >= 16 and out.flags.c_contiguous:
        if out.dtype in _FLOATS:
            return _fill(out, out.dtype, _normal_blocks, stream, mean, std)
        return _reduced_normal(stream, out, mean, std)
    return _fill(out, _compute_dtype(out.dtype), _normal_pairs, stream, mean, std)


def _reduced_normal(stream, out, mean, std):
    """float16 and bfloat16: whole blocks, of which a last one overlaps its neighbour."""
    numbers = np.empty(-(-out.size // 16) * 16, np.float32)
    _normal_blocks(stream.words, numbers, mean, std)
    flat, whole = out.reshape(-1), out.size // 16 * 16
    flat[:whole] = numbers[:whole]
    flat[-16:] = numbers[-16:]
    return out


def bernoulli(stream, out, p=0.5):
    """Ones with probability `p`, else zeros."""
    dtype = out.dtype if out.dtype in _FLOATS else np.dtype(np.uint8)
    return _fill(out, dtype, _bernoulli, stream, p, 1.0)


def dropout_mask(stream, out, p):
    """Zeros with probability `p`, elsewhere 1 / (1 - p)."""
    keep = 1.0 - p
    heart = _compute_dtype(out.dtype).type
    scale = heart(1) / heart(keep) if keep else heart(0)
    if out.dtype in _FLOATS:
        return _fill(out, out.dtype, _bernoulli, stream, keep, float(scale))
    bernoulli(stream, out, keep)
    out *= out.dtype.type(scale)
    return out


def bernoulli_each(stream, out, p):
    """Ones with the probabilities in `p`, of `out`'s shape; float64 ones see 53 bits, others 24."""
    order = in_memory_order(out)
    if out.size and order is not out:
        p = p.transpose(sorted(range(out.ndim), key=lambda dim: -out.strides[dim]))
    draws = np.empty(order.shape, _compute_dtype(p.dtype))
    _uniform(stream.words, draws.reshape(-1), 0.0, 1.0)
    order[...] = draws < (p if p.dtype is draws.dtype else p.astype(draws.dtype, copy=False))
    return out


def integers(stream, out, low, high):
    """Integers in [low, high): remainders of 32 bits, of 64 bits for ranges from 2**28 on."""
    return _fill(out, np.dtype(np.int64), _integers, stream, high - low, low)


def random(stream, out, low=None):
    """Integers over the whole range of a dtype: from 0, or from `low`, to its largest value.

    For floating dtypes that is the largest up to which every integer is represented; from the
    lowest int64 on, all 64 bits are used.
    """
    dtype = out.dtype
    if dtype == np.bool_:
        top = 1
    elif dtype.kind in "iu":
        top = int(np.iinfo(dtype).max)
    else:
        top = 1 << digits(dtype)
    if low == _LOWEST:
        bits = np.empty(out.size, np.uint64)
        _raw(stream.words, bits)
        view = in_memory_order(out)
        view[...] = bits.view(np.int64).reshape(view.shape)
        return out
    if low is None and dtype == np.int32:  # the one dtype for which 31 bits come from one draw
        view = in_memory_order(out)
        view[...] = (stream.raw32(out.size) & np.uint32(top)).reshape(view.shape)
        return out
    return integers(stream, out, low or 0, top + 1)


def digits(dtype):
    """Bits of a floating dtype's significand, the hidden one included."""
    known = {np.dtype(np.float64): 53, np.dtype(np.float32): 24, np.dtype(np.float16): 11}
    return known.get(dtype, 8)


def permutation(stream, n):
    """A permutation of 0..n-1, as int64."""
    out = np.empty(n, np.int64)
    _permutation(stream.words, out)
    return out


def log_normal(stream, out, mean=1.0, std=2.0):
    """Numbers whose logarithms are normal, drawn in pairs."""
    return _fill(out, _compute_dtype(out.dtype), _log_normal, stream, mean, std)


def cauchy(stream, out, median=0.0, sigma=1.0):
    """Cauchy numbers: tan of a uniform angle."""
    return _fill(out, _compute_dtype(out.dtype), _cauchy, stream, median, sigma)


def exponential(stream, out, rate=1.0):
    """Exponential numbers of mean 1/rate."""
    if math.isinf(rate):
        _fill(out, _compute_dtype(out.dtype), _exponential, stream, 1.0)
        out[...] = 0
        return out
    return _fill(out, _compute_dtype(out.dtype), _exponential, stream, rate)


def geometric(stream, out, p):
    """How many trials of success probability `p` it takes to succeed: 1, 2, …"""
    return _fill(out, _compute_dtype(out.dtype), _geometric, stream, p)


def _sampled(stream, kernel, *parameters):
    """Samples for parameters of one shape; float16 and bfloat16 are sampled in float32."""
    dtype, shape = parameters[0].dtype, parameters[0].shape
    heart = _compute_dtype(dtype)
    out = np.empty(shape, heart)
    flat = [np.ascontiguousarray(p, heart).reshape(-1) for p in parameters]
    kernel(stream.words, out.reshape(-1), *flat)
    return out if heart == dtype else out.astype(dtype)


def poisson(stream, rate):
    """Poisson counts of the given rates."""
    return _sampled(stream, _poisson, rate)


def binomial(stream, count, p):
    """Successes among `count` trials of probability `p`; two arrays of one shape and dtype."""
    return _sampled(stream, _binomial, count, p)


def standard_gamma(stream, alpha):
    """Gamma numbers of the given shapes and scale 1, never less than the smallest normal number."""
    return np.maximum(_sampled(stream, _gamma, alpha), np.finfo(alpha.dtype).tiny)


def dirichlet(stream, alpha):
    """Points of the simplex: gamma numbers, in float64, over their sum along the last dimension."""
    numbers = np.maximum(_sampled(stream, _gamma, alpha.astype(np.float64)), np.finfo(float).tiny)
    shares = (numbers / numbers.sum(-1, keepdims=True)).astype(alpha.dtype)
    one = alpha.dtype.type(1)
    return np.clip(shares, np.finfo(alpha.dtype).tiny, np.nextafter(one, 0 * one))


@kernels.quiet
def multinomial(stream, weights, n, replacement=False):
    """Indices of `n` draws per row (the last dimension) with probabilities in ratio to `weights`.

    Several draws with replacement invert the cumulative sum. Otherwise each weight is divided by an
    exponential number: the largest quotients are a draw without replacement.
    """
    if replacement and n > 1:
        return _multinomial_with_replacement(stream, weights, n)
    noise = exponential(stream, np.empty_like(weights, order="C"))
    quotient = weights / noise
    if n == 1:
        return np.argmax(quotient, -1)[..., None]
    from flambeau.kernels.reduction import sorting  # which few draws need
    return sorting.topk(quotient, n, -1)[1]


def _multinomial_with_replacement(stream, weights, n):
    heart = _compute_dtype(weights.dtype)
    rows = weights.reshape(-1, weights.shape[-1]).astype(heart, copy=False)
    bounds = np.add.accumulate(rows, -1)
    bounds /= bounds[:, -1:]
    bounds[:, -1:] = 1
    from flambeau.kernels.reduction import searching  # which these draws need
    draws = uniform(stream, np.empty((len(rows), n)))
    result = searching.searchsorted(bounds.astype(np.float64), draws, None, False, False, None)
    return result.reshape(*weights.shape[:-1], n)


def rrelu_slopes(stream, x, lower, upper):
    """A slope in [lower, upper) for each element of `x` that is not positive, 1 for the others."""
    slopes = np.ones(x.shape, x.dtype)
    falling = x <= 0
    heart = _compute_dtype(x.dtype)
    lower, upper = float(heart.type(lower)), float(heart.type(upper))
    draws = uniform(stream, np.empty(np.count_nonzero(falling)))
    slopes[falling] = (draws * (upper - lower) + lower).astype(heart)
    return slopes
