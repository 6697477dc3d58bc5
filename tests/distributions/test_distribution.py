"""What all distributions share: checks of arguments and values, expansion, shapes."""

import pytest
from distribution_cases import cases

import flambeau as torch
from flambeau.distributions import Distribution, Independent, Normal, Uniform


@pytest.mark.parametrize("make, message", [
    (lambda: Normal(0.0, -1.0), r"Expected parameter scale \(Tensor of shape \(\)\) of "
     r"distribution Normal\(loc: 0.0, scale: -1.0\) to satisfy the constraint "
     r"GreaterThan\(lower_bound=0.0\), "
     "but found invalid values:\n-1.0"),
    (lambda: Normal("a", 1.0), "Input arguments must all be instances of Number, torch.Tensor"),
    (lambda: Uniform(1.0, 0.0), r"Expected parameter low .* LessThan\(upper_bound=0.0\)"),
])
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_bad_values():
    d = Normal(torch.zeros(2), 1.0)
    with pytest.raises(ValueError, match="The value argument to log_prob must be a Tensor"):
        d.log_prob(1.0)
    with pytest.raises(ValueError, match="Value is not broadcastable with batch_shape"):
        d.log_prob(torch.zeros(3))
    with pytest.raises(ValueError, match=r"within the support \(Real\(\)\) of the distribution"):
        d.log_prob(torch.tensor([float("nan"), 0.0]))
    unchecked = Normal(torch.zeros(2), 1.0, validate_args=False)
    assert unchecked.log_prob(torch.tensor([float("nan"), 0.0]))[0].isnan()


def test_default_of_validation():
    try:
        Distribution.set_default_validate_args(False)
        assert Normal(0.0, -1.0).scale.item() == -1.0
    finally:
        Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError):
        Distribution.set_default_validate_args(3)


def test_subclasses_must_expand_themselves():
    class Shifted(Normal):
        def __init__(self, shift):
            super().__init__(shift, 1.0)

    with pytest.raises(NotImplementedError, match=r"must also define a custom \.expand"):
        Shifted(torch.zeros(1)).expand((3,))

    class Same(Normal):
        pass

    assert type(Same(0.0, 1.0).expand((3,))) is Same


def test_shapes_of_samples():
    d = Independent(Normal(torch.zeros(2, 3), 1.0), 1)
    assert (d.batch_shape, d.event_shape) == ((2,), (3,))
    assert d.sample((4, 1)).shape == (4, 1, 2, 3) and d.sample((0,)).shape == (0, 2, 3)
    assert isinstance(d._extended_shape([4]), torch.Size)


def test_what_a_subclass_leaves_out():
    class Bare(Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        Bare()
    bare = Bare(validate_args=False)
    for name in ("mean", "variance", "stddev", "support"):
        with pytest.raises(NotImplementedError):
            getattr(bare, name)
    with pytest.raises(NotImplementedError, match="does not implement mode"):
        bare.mode
    for call in (bare.sample, bare.rsample, bare.entropy, bare.enumerate_support):
        with pytest.raises(NotImplementedError):
            call()

    class Unsupported(Normal):
        @property
        def support(self):
            raise NotImplementedError

    with pytest.warns(UserWarning, match="does not define `support` to enable sample validation"):
        Unsupported(0.0, 1.0).log_prob(torch.tensor(0.0))


def test_sample_n_and_perplexity():
    d = Normal(torch.zeros(2), 1.0)
    with pytest.warns(FutureWarning, match=r"`sample_n\(n\)` will be deprecated. Use `sample\(\(n"):
        assert d.sample_n(3).shape == (3, 2)
    torch.testing.assert_close(d.perplexity().log(), d.entropy())


def test_repr_shows_single_numbers_and_shapes():
    single = Normal(0.0, torch.tensor([2.0]))
    assert repr(single) == "Normal(loc: tensor([0.]), scale: tensor([2.]))"
    assert repr(Normal(torch.zeros(2, 1), 1.0)) == (
        "Normal(loc: torch.Size([2, 1]), scale: torch.Size([2, 1]))")


def test_every_distribution_is_recorded():
    named = {case.split()[0] for case in cases(torch)}
    public = {name for name, value in vars(torch.distributions).items()
              if isinstance(value, type) and issubclass(value, Distribution)}
    assert public - named == {"Distribution", "ExponentialFamily"}
