"""`__torch_function__`: which function a subclass is handed."""

import pytest

import flambeau


@pytest.mark.parametrize("call, name", [
    (lambda t: flambeau.add(t, 1), "flambeau.add"),
    (lambda t: flambeau.sub(t, 1, alpha=2), "flambeau.sub"),
    (lambda t: t[0], "flambeau.Tensor.__getitem__"),
    (lambda t: t.add_(1), "flambeau.Tensor.add_"),
    (lambda t: flambeau.sum(t), "flambeau.sum"),
    (lambda t: flambeau.stack([t, t]), "flambeau.stack"),
])
def test_the_function_handed_over_is_the_one_users_name(call, name):
    seen = []

    class Watching(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})
    result = call(flambeau.ones(3).as_subclass(Watching))
    expected = flambeau
    for part in name.split(".")[1:]:
        expected = getattr(expected, part)
    assert seen[0] is expected
    assert type(result) is Watching


def test_a_mode_takes_over_functions_that_make_tensors():
    seen = []

    class Watch(flambeau.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))
    with Watch():
        flambeau.tensor([1.0, 2.0]), flambeau.zeros(2), flambeau.arange(3), flambeau.eye(2)
        flambeau.full((2,), 1.0)
    assert seen == [flambeau.tensor, flambeau.zeros, flambeau.arange, flambeau.eye, flambeau.full]
