"""Calls of registered ops, bound to their schemas."""
import pytest

import flambeau as torch


@pytest.fixture(scope="module")
def op():
    with torch.library._scoped_library("mirror_arguments", "FRAGMENT") as library:
        library.define("f(Tensor x, int n, int[2] s=1, *, float scale=2, str? mode=None) -> Tensor")
        seen = []

        def kernel(x, n, s=(1, 1), scale=2.0, mode=None):
            seen.append((n, list(s), scale, mode))
            return x.clone()
        library.impl("f", kernel, "CompositeExplicitAutograd")
        call = torch.ops.mirror_arguments.f
        yield lambda *args, **kwargs: (call(*args, **kwargs), seen[-1])[1]


X = torch.ones(2)


@pytest.mark.parametrize(("args", "kwargs", "values"), [
    ((X, 3), {}, (3, [1, 1], 2.0, None)),
    ((X, 3, 4), {}, (3, [4, 4], 2.0, None)),
    ((X, 3, [4, 5]), {"mode": "a", "scale": 7}, (3, [4, 5], 7.0, "a")),
    ((X,), {"n": True}, (1, [1, 1], 2.0, None)),
    ((), {"n": 2, "x": X, "s": (6, 7)}, (2, [6, 7], 2.0, None)),
    ((X, torch.tensor(5)), {}, (5, [1, 1], 2.0, None)),
])
def test_values_have_the_types_of_the_schema(op, args, kwargs, values):
    found = op(*args, **kwargs)
    assert found == values
    assert [type(v) for v in found] == [type(v) for v in values]


@pytest.mark.parametrize(("args", "kwargs", "message"), [
    ((X,), {}, r"f\(\) is missing value for argument 'n'. Declaration: mirror_arguments::f\("),
    ((X, 1), {"x": X}, "Argument 'x' specified both as positional and keyword argument. Sch"),
    ((X, 1, 2, 3.0), {}, r"f\(\) takes 3 positional argument\(s\) but 4 was/were given"),
    ((X, 1), {"q": 2}, "Unknown keyword argument 'q' for operator 'mirror_arguments::f'"),
    ((X, "a"), {}, r"f\(\) Expected a value of type 'int' for argument 'n' but instead found type "
                   "'str'"),
    ((X, 1.5), {}, "Expected a value of type 'int' for argument 'n' but instead found type "
                   "'float'"),
    ((3, 1), {}, "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
    ((X, 1, ["a"]), {}, r"Expected a value of type 'List\[int\]' for argument 's' but instead "
                        "found type 'list'"),
    ((X, 1), {"mode": 3}, r"Expected a value of type 'Optional\[str\]' for argument 'mode' but "
                          "instead found type 'int'"),
])
def test_calls_that_do_not_fit(op, args, kwargs, message):
    with pytest.raises(RuntimeError, match=message):
        op(*args, **kwargs)
