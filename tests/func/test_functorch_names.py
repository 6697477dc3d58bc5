"""The names by which libraries reach into vmap, and put containers of their own into it."""
import flambeau
from flambeau._C import _functorch
from flambeau._functorch import vmap as internals


def test_what_a_slice_is():
    seen = []

    def look(x):
        plain = flambeau.ones(3)
        level = _functorch.maybe_get_level(x)
        seen.append((_functorch.is_batchedtensor(x), _functorch.maybe_get_bdim(x), level,
                     tuple(_functorch.get_unwrapped(x).shape), _functorch.is_batchedtensor(plain),
                     _functorch.maybe_get_bdim(plain)))
        more = _functorch._add_batch_dim(flambeau.arange(6.0).view(3, 2), 1, level)
        seen.append(_functorch._remove_batch_dim(more * x.sum(), level, 2, 0).tolist())
        return x * 2

    flambeau.vmap(look, 1)(flambeau.ones(3, 2))
    assert seen == [(True, 1, 1, (3, 2), False, -1), [[0.0, 6.0, 12.0], [3.0, 9.0, 15.0]]]


def test_a_library_can_batch_its_own_containers(monkeypatch):
    class Box:
        def __init__(self, x):
            self.x = x

    create, unwrap = internals._create_batched_inputs, internals._unwrap_batched

    def process(in_dims, args, func):
        sizes, dims, leaves, spec = original(in_dims, [a.x for a in args], func)
        return sizes, dims, leaves, spec

    original = internals._process_batched_inputs
    monkeypatch.setattr(internals, "_process_batched_inputs", process)
    monkeypatch.setattr(internals, "_create_batched_inputs",
                        lambda *args: [Box(x) for x in create(*args)])
    monkeypatch.setattr(internals, "_unwrap_batched",
                        lambda out, *args: Box(unwrap(out.x, *args)))
    result = flambeau.vmap(lambda box: Box(box.x.sum()))(Box(flambeau.ones(2, 3)))
    assert result.x.tolist() == [3.0, 3.0]
