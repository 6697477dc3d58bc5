"""Transforms made of others: one after another, side by side, over more dimensions."""
import functools
import operator
import weakref

import flambeau
from flambeau.distributions import constraints
from flambeau.distributions.transforms.base import Transform
from flambeau.distributions.utils import _sum_rightmost, lazy_property


class ComposeTransform(Transform):
    """Transforms one after another, the first of the list first.

    Args:
        parts: the transforms.
        cache_size: 0 or 1, for each of them.
    """

    def __init__(self, parts, cache_size=0):
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """What the first part takes, with as many dimensions as all need."""
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _widen(domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """What the last part gives, with as many dimensions as all need."""
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _widen(codomain, event_dim)

    @lazy_property
    def bijective(self):
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self):
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self):
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return flambeau.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, x, y in zip(self.parts, values[:-1], values[1:], strict=True):
            terms.append(_sum_rightmost(
                part.log_abs_det_jacobian(x, y), event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


def _widen(constraint, event_dim):
    """The constraint on events of more dimensions."""
    if event_dim < constraint.event_dim:
        raise AssertionError(f"event_dim ({event_dim}) must be >= {constraint.event_dim}")
    if event_dim > constraint.event_dim:
        return constraints.independent(constraint, event_dim - constraint.event_dim)
    return constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions count as parts of one event.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many dimensions.
        cache_size: 0 or 1.
    """

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """That of the base, with more dimensions in an event."""
        return constraints.independent(
            self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """That of the base, with more dimensions in an event."""
        return constraints.independent(
            self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y),
                              self.reinterpreted_batch_ndims)

    def __repr__(self):
        return (f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})")

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class CatTransform(Transform):
    """Transforms of pieces of given lengths along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: the length of each one's piece, by default 1.
        cache_size: 0 or 1.
    """

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        _check_transforms(tseq)
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.transforms)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms "
                                 f"({len(self.transforms)})")
        self.dim = dim

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        return sum(self.lengths)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x, name="x"):
        _check_size(x, name, self.dim, self.length, f"length {self.length}")
        return x.split(self.lengths, self.dim)

    def _call(self, x):
        pieces = zip(self.transforms, self._pieces(x), strict=True)
        return flambeau.cat([t(piece) for t, piece in pieces], dim=self.dim)

    def _inverse(self, y):
        pieces = zip(self.transforms, self._pieces(y, "y"), strict=True)
        return flambeau.cat([t.inv(piece) for t, piece in pieces], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = []
        for t, a, b in zip(
                self.transforms, self._pieces(x), self._pieces(y, "y"), strict=True):
            terms.append(_sum_rightmost(
                t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim if self.dim < 0 else self.dim - x.dim()
        dim += self.event_dim
        return flambeau.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self):
        """The domains of the parts, joined along `dim`."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The codomains of the parts, joined along `dim`."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(Transform):
    """Transforms of the slices along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
        cache_size: 0 or 1.
    """

    def __init__(self, tseq, dim=0, cache_size=0):
        _check_transforms(tseq)
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _slice(self, z, name="x"):
        n = len(self.transforms)
        _check_size(z, name, self.dim, n, f"len(transforms) {n}")
        return z.unbind(self.dim)

    def _call(self, x):
        pairs = zip(self._slice(x), self.transforms, strict=True)
        return flambeau.stack([t(piece) for piece, t in pairs], dim=self.dim)

    def _inverse(self, y):
        pairs = zip(self._slice(y, "y"), self.transforms, strict=True)
        return flambeau.stack([t.inv(piece) for piece, t in pairs], dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        triples = zip(self._slice(x), self._slice(y, "y"), self.transforms, strict=True)
        return flambeau.stack([t.log_abs_det_jacobian(a, b) for a, b, t in triples], dim=self.dim)

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    @constraints.dependent_property
    def domain(self):
        """The domains of the parts, stacked along `dim`."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The codomains of the parts, stacked along `dim`."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


def _check_size(value, name, dim, size, what):
    """Raise an error unless the argument `name` has this size along `dim`."""
    if not -value.dim() <= dim < value.dim():
        raise AssertionError(f"dim {dim} out of range for tensor with {value.dim()} dimensions")
    if value.size(dim) != size:
        raise AssertionError(f"{name}.size({dim}) = {value.size(dim)} must equal {what}")


def _check_transforms(tseq):
    if not all(isinstance(t, Transform) for t in tseq):
        raise AssertionError("All elements of tseq must be Transform instances")
