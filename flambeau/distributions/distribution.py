"""What all distributions share: shapes, validation, expansion, sampling without gradients."""

import warnings

import flambeau
from flambeau import Tensor
from flambeau._support.own_methods import define_in_subclasses
from flambeau.core.shapes import Size
from flambeau.distributions import constraints
from flambeau.distributions.utils import lazy_property

__all__ = ["Distribution"]


@define_in_subclasses("expand", further=True)
class Distribution:
    r"""Base of probability distributions.

    A sample has the shape `sample_shape + batch_shape + event_shape`: independent draws,
    different parameters, and the dimensions of one draw.

    A subclass names its parameters and their constraints in `arg_constraints`, its `support`,
    and implements `rsample` (with `has_rsample = True`, where samples are differentiable) or
    `sample`, and `log_prob`.

    Args:
        batch_shape: shape of the parameters' batch.
        event_shape: shape of one draw.
        validate_args: whether to check parameters and values; by default as
            :meth:`set_default_validate_args` says.

    Example::

        >>> import flambeau as torch
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
        (torch.Size([3]), torch.Size([]), torch.Size([2, 3]))
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value):
        """Whether distributions check their arguments when not told otherwise."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=Size(), event_shape=Size(), validate_args=None):
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self):
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = "
                "{}` or initialize the distribution with `validate_args=False` to turn off "
                "validation.", stacklevel=4)
            return
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint) or (
                    name not in self.__dict__
                    and isinstance(getattr(type(self), name), lazy_property)):
                continue
            value = getattr(self, name)
            if not flambeau._is_all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}")

    def expand(self, batch_shape, _instance=None):
        """The same distribution with a larger batch shape, to which the parameters expand.

        Args:
            batch_shape: the shape.
        """
        new = self._get_checked_instance(self._own_class(), _instance)
        batch_shape = flambeau.Size(batch_shape)
        for name in self._tensors:
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                setattr(new, name, _expand_batch(value, self._batch_shape, batch_shape))
        for name in self._members:
            member = getattr(self, name)
            setattr(new, name, member.expand(batch_shape) if member is not None else None)
        self._expand_rest(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    # names of distributions of the same batch shape that this one is made of
    _members: tuple[str, ...] = ()

    @property
    def _tensors(self):
        """Names of the attributes whose batch dimensions `expand` expands."""
        return tuple(self.arg_constraints)

    def _expand_rest(self, new, batch_shape):
        """Give `new`, a copy expanded to that shape, what else it needs."""

    def _own_class(self):
        """The class of this package that the instance is of, or inherits from."""
        package = __name__.rpartition(".")[0]
        return next(c for c in type(self).__mro__ if c.__module__.startswith(package + "."))

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method.")
        return type(self).__new__(type(self)) if _instance is None else _instance

    @property
    def batch_shape(self):
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one draw."""
        return self._event_shape

    @property
    def arg_constraints(self):
        """Names of the parameters, and their constraints."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that all values satisfy that can be drawn."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The mode."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=Size()):
        """Draw values, without gradients.

        Args:
            sample_shape: shape of the independent draws.
        """
        with flambeau.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=Size()):
        """Draw values through which gradients reach the parameters.

        Args:
            sample_shape: shape of the independent draws.
        """
        raise NotImplementedError

    def sample_n(self, n):
        """Draw `n` values; `sample((n,))` is the newer way to say it."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
                      FutureWarning, stacklevel=2)
        return self.sample(flambeau.Size((n,)))

    def log_prob(self, value):
        """The logarithm of the density, or of the probability, of a value."""
        raise NotImplementedError

    def cdf(self, value):
        """The probability of a draw no larger than the value."""
        raise NotImplementedError

    def icdf(self, value):
        """The inverse of :meth:`cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution, along a new first dimension.

        Args:
            expand: expand them over the batch shape.
        """
        raise NotImplementedError

    def entropy(self):
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self):
        """The exponential of the entropy."""
        return flambeau.exp(self.entropy())

    def _extended_shape(self, sample_shape=Size()):
        """The shape of samples."""
        return flambeau.Size(sample_shape) + self._batch_shape + self._event_shape

    def _check_sample(self, value):
        """Where arguments are checked, validate a value whose probability is asked for."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value):
        """Raise an error unless `value` can be a sample, by shape and by support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        event_dims = len(self._event_shape)
        if value.size()[value.dim() - event_dims:] != self._event_shape:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{value.size()} vs {self._event_shape}.")
        expected = self._batch_shape + self._event_shape
        for i, j in zip(reversed(value.size()), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError("Value is not broadcastable with batch_shape+event_shape: "
                                 f"{value.size()} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4)
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not flambeau._is_all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}")

    def __repr__(self):
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _expand_batch(value, old, new):
    """Expand the batch dimensions of a parameter, which may have more dimensions behind."""
    own = value.shape[len(old):]
    return value.expand(new + own)
