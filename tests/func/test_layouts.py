"""Where the elements of slices lie in memory, under vmap: views, copies, windows by strides."""
import pytest

import flambeau
from flambeau.func import grad, vmap

X = flambeau.arange(60.0).view(4, 3, 5) % 7 + 1
IN_ORDER = [
    lambda a: a.reshape(-1), lambda a: a.flatten(), lambda a: a.mT.reshape(-1),
    lambda a: a.roll(2), lambda a: a.repeat_interleave(2), lambda a: a.quantile(0.3),
    lambda a: a.contiguous().view(-1), lambda a: a.clone().contiguous().view(-1),
    lambda a: a.clone(memory_format=flambeau.contiguous_format).view(-1),
    grad(lambda a: a.prod() * 1.0), grad(lambda a: (a.reshape(-1)[::2] ** 2).sum()),
    lambda a: flambeau.stft(a.flatten(), 4, window=flambeau.ones(4), return_complex=True)]


def looped(function, dim):
    return lambda x: flambeau.stack([function(one) for one in x.unbind(dim)])


@pytest.mark.parametrize("function", IN_ORDER)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_elements_in_order_whatever_the_dimension_of_slices(function, dim):
    flambeau.testing.assert_close(vmap(function, in_dims=dim)(X), looped(function, dim)(X))
    more = flambeau.arange(120.0).view(4, 3, 5, 2) % 11 + 1
    for outer in (0, 1, 2):
        found = vmap(vmap(function, in_dims=dim), in_dims=outer)(more)
        flambeau.testing.assert_close(found, looped(looped(function, dim), outer)(more))


@pytest.mark.parametrize("whole", [X, X[1:, 1:], X.mT, X[:, :, ::2]])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_geometry_of_slices(whole, dim):
    seen = []
    geometry = lambda a: (a.stride(), a.stride(-1), a.is_contiguous(), a.storage_offset())
    vmap(lambda a: (seen.append(geometry(a)), a)[1], in_dims=dim)(whole)
    assert seen == [geometry(whole.select(dim, 0))]


@pytest.mark.parametrize("function, dim", [(lambda a: a.view(-1), 1),
                                           (lambda a: a.mT.view(-1), 0)])
def test_views_of_slices_that_skip_memory_are_refused(function, dim):
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        vmap(function, in_dims=dim)(X)


@pytest.mark.parametrize("function, message", [
    (lambda a: a.contiguous(memory_format=flambeau.channels_last), "NYI: querying is_contiguous"),
    (lambda a: a.clone(memory_format=flambeau.channels_last), r"\(got ChannelsLast\)")])
def test_slices_have_no_channels_last(function, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(function)(flambeau.ones(2, 3, 4, 5, 6))
