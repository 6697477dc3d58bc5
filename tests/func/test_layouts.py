"""Where the elements of slices lie in memory, under vmap: views, copies, windows by strides."""
import re

import pytest

import flambeau
from flambeau.func import grad, jacfwd, jacrev, jvp, vmap
from flambeau.ops.spatial.pool import add_at

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


@pytest.mark.parametrize("function", [
    lambda a: a.contiguous(memory_format=flambeau.channels_last),
    lambda a: a.clone(memory_format=flambeau.channels_last),
    lambda a: a.int(memory_format=flambeau.channels_last)])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_whose_channels_lie_last(function, dim):
    """PyTorch has no such layouts under vmap."""
    images = flambeau.arange(360.0).view(2, 3, 4, 5, 3)
    seen = lambda a: (a.stride(), a.is_contiguous(),
                      a.is_contiguous(memory_format=flambeau.channels_last))
    layouts = []
    found = vmap(lambda a: (layouts.append(seen(function(a))), function(a))[1], dim)(images)
    flambeau.testing.assert_close(found, looped(function, dim)(images))
    assert layouts == [seen(function(images.select(dim, 0)))]
    assert vmap(vmap(function, dim), 1)(flambeau.stack([images] * 2, 1)).equal(
        flambeau.stack([found] * 2))
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        vmap(lambda a: a.clone(memory_format=flambeau.channels_last))(images[0, 0])


@pytest.mark.parametrize("size", [(4, 2), (2, 2), (3, 3), (1, 2, 4)])
@pytest.mark.parametrize("dim", [0, 2])
def test_slices_are_resized_each_for_itself(size, dim):
    resized = lambda a: a.clone().resize_(size)
    whole = flambeau.arange(16.0).view(2, 4, 2).movedim(0, dim)
    flambeau.testing.assert_close(vmap(resized, dim)(whole), looped(resized, dim)(whole))


@pytest.mark.parametrize("window", [((2, 2), (1, 1)), ((2, 2), (1, 1), None), ((2,), (4,))])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_windows_look_at_the_memory_of_slices(window, dim):
    shift = X.select(dim, 1).storage_offset()
    shape, stride = window[:2]
    expected = flambeau.stack([X.as_strided(shape, stride, i * shift)
                               for i in range(X.shape[dim])])
    assert flambeau.equal(vmap(lambda a: a.as_strided(*window), in_dims=dim)(X), expected)
    ones = grad(lambda x: vmap(lambda a: a.as_strided(*window), in_dims=dim)(x).sum())(X)
    assert ones.sum() <= expected.numel() and ones.max() >= 1


@pytest.mark.parametrize("whole, dim, window, found, own", [
    (X, 0, ((9, 9), (4, 1)), "[0, 41]", "[0, 15]"),
    (X, 1, ((2,), (1,), -1), "[-1, 1]", "[0, 50]"),
    (X[1:], 0, ((2,), (2,), 0), "[0, 3]", "[15, 30]")])
def test_windows_outside_of_slices_are_refused(whole, dim, window, found, own):
    message = f"access some memory in range {found}, but `tensor` can only access some memory " \
              f"in range {own}."
    with pytest.raises(RuntimeError, match=re.escape(message)):
        vmap(lambda a: a.as_strided(*window), in_dims=dim)(whole)


def test_shapes_grow_by_the_slices_of_their_own_level():
    grads, indices = flambeau.rand(3, 1, 2, 2), flambeau.randint(0, 16, (2, 1, 2, 2))
    found = vmap(lambda g: vmap(lambda i: add_at(g, i, (1, 4, 4), 2))(indices))(grads)
    expected = flambeau.stack([flambeau.stack([add_at(g, i, (1, 4, 4), 2) for i in indices])
                               for g in grads])
    assert found.shape == (3, 2, 1, 4, 4) and flambeau.equal(found, expected)


def test_parts_written_in_place_under_forward_mode():
    """`y[0] *= …` stores a view into itself: the memory is the same, and is no overlap."""
    def f(x):
        y = x.clone()
        y[0] *= x[1]
        y[0:2] += x[1:3]
        return y
    x = flambeau.tensor([1.0, 2.0, 3.0])
    wanted = [[2.0, 2, 0], [0, 1, 1], [0, 0, 1]]
    assert jacfwd(f)(x).tolist() == jacrev(f)(x).tolist() == wanted


@pytest.mark.parametrize("function", [
    lambda a: a.view(-1), lambda a: a.reshape(-1), lambda a: a.flatten(), lambda a: a.view(5, 3),
    lambda a: a.mul_(2), lambda a: a.view(-1).mul_(a.reshape(-1)),
    lambda a: flambeau.view_as_complex(a[:, :4].reshape(6, 2)).abs()])
def test_tangents_need_not_lie_in_memory_as_the_values_do(function):
    x, spread = X[0].double(), flambeau.ones((), dtype=flambeau.double).expand(3, 5)
    turned = X[1].double().t().contiguous().t()
    for tangent in (spread, turned):
        dense = tangent.clone(memory_format=flambeau.contiguous_format)
        wanted = jvp(function, (x.clone(),), (dense,))[1]
        flambeau.testing.assert_close(jvp(function, (x.clone(),), (tangent,))[1], wanted)
        found = vmap(lambda t: jvp(function, (x * 1,), (t,))[1], -1)(
            flambeau.stack([tangent] * 2, -1))
        flambeau.testing.assert_close(found[1], wanted)
