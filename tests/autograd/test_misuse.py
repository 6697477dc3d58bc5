"""What PyTorch refuses is refused, in its words."""
import pytest

import flambeau as torch
from flambeau.autograd import Function, grad

X = torch.ones(2, requires_grad=True)
OTHER = torch.ones(2, requires_grad=True)


class Marks(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(3)
        return x


class MarksDirty(Function):
    @staticmethod
    def forward(ctx, x, dirty):
        ctx.mark_dirty(dirty)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, g


class Number(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return 3


class Extra(Function):
    @staticmethod
    def forward(ctx, x, n):
        return x * n

    @staticmethod
    def backward(ctx, g):
        return g, g


REFUSED = [
    (lambda: grad((X * 2).sum(), [X, OTHER]),
     "The differentiated Tensor at index 1 appears to not have been used in the graph"),
    (lambda: grad((X * 2).sum(), []), r"`inputs` argument to `grad\(\)` cannot be empty"),
    (lambda: setattr(X, "grad", torch.ones(3)),
     r"assign a gradient of size '\[3\]' to a tensor of size '\[2\]'"),
    (lambda: setattr(X, "grad", torch.ones(2).double()),
     "gradient with dtype 'double' to a tensor with grad_dtype 'Float'"),
    (lambda: Marks.apply(X), "mark_non_differentiable only accepts variable arguments"),
    (lambda: Number.apply(X).sum().backward(), r"expected Variable or None \(got int\)"),
    (lambda: MarksDirty.apply(X, 3), "mark_dirty can only accept variables, but argument \n0"),
    (lambda: MarksDirty.apply(X, X), "a leaf Variable that requires grad has been used in an"),
    (lambda: MarksDirty.apply(X.clone(), X.clone()), "marked as dirty during the forward method"),
    (lambda: Extra.apply(X, 2).sum().backward(), "ExtraBackward returned a gradient different "
     "than None at position 2, but the corresponding forward input was not a Variable"),
]


@pytest.mark.parametrize("call, message", REFUSED)
def test_refused(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_materialised_gradients_are_differentiable_where_a_graph_is_asked_for():
    for create_graph in (False, True):
        g, = grad((X * 2).sum(), OTHER, materialize_grads=True, create_graph=create_graph)
        assert g.tolist() == [0, 0] and g.requires_grad is create_graph


def test_anomaly_mode_shows_the_users_lines():
    def forward():
        x = torch.zeros(2, requires_grad=True)
        return (x.sqrt() * 0).sum()
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    with pytest.warns(UserWarning, match="has been enabled"), torch.autograd.detect_anomaly():
        assert torch.is_anomaly_enabled()
        inside = forward()
    with pytest.warns(UserWarning) as caught, pytest.raises(RuntimeError, match="nan values"), \
            torch.autograd.detect_anomaly():
        inside.backward()
    shown = str(caught[-1].message)
    assert shown.startswith("Error detected in SqrtBackward0. Traceback of forward call")
    assert shown.rstrip().endswith("return (x.sqrt() * 0).sum()")

    outside = forward()
    with pytest.warns(UserWarning) as caught, pytest.raises(RuntimeError, match="nan values"), \
            torch.autograd.detect_anomaly():
        outside.backward()
    shown = str(caught[-1].message)
    assert "No forward pass information available" in shown
    assert shown.endswith("return (x.sqrt() * 0).sum()")
