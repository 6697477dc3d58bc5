"""`backward` and `grad`: weights, what is differentiated, what is refused."""
import pytest

import flambeau as torch
from flambeau.autograd import Function, backward, grad


def test_weights():
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    slope, = grad(x**2, x, torch.tensor([1.0, 0.0, -1.0]))
    assert slope.tolist() == [2.0, 0.0, -6.0]
    a, b = grad([x.sum(), (x**2).sum()], [x, x], [None, torch.tensor(2.0)])
    assert a.tolist() == b.tolist() == [5.0, 9.0, 13.0]


def test_rows_of_a_jacobian_at_once():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    rows, = grad(x**2, x, torch.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_backward_to_some_inputs():
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    z = x * 3
    backward((z * y).sum(), inputs=[x, z])
    assert x.grad.tolist() == [3.0, 3.0] and z.grad.tolist() == [1.0, 1.0] and y.grad is None


def test_several_roots_share_a_graph():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    backward([y.sum(), (2 * y).sum()])
    torch.testing.assert_close(x.grad, 3 * x.detach().exp())


def test_second_passes():
    x = torch.ones(2, requires_grad=True)
    y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())


LEAF, FURTHER = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)


@pytest.mark.parametrize("call, error, message", [
    (lambda: grad(LEAF * 2, LEAF), RuntimeError,
     "grad can be implicitly created only for scalar outputs"),
    (lambda: grad(LEAF * 2, LEAF, torch.ones(3)), RuntimeError, "Mismatch in shape: grad_output"),
    (lambda: grad(LEAF.sum(), LEAF, 3), TypeError, "'int' object is not iterable"),
    (lambda: grad((LEAF * (1 + 1j)).sum(), LEAF), RuntimeError, "only for real scalar outputs"),
    (lambda: grad(LEAF.sum(), LEAF, torch.tensor(1 + 1j)), RuntimeError,
     "For complex Tensors, both grad_output and output are required to have the same dtype"),
    (lambda: grad(torch.ones(1), LEAF), RuntimeError,
     "element 0 of tensors does not require grad and does not have a grad_fn"),
    (lambda: grad(LEAF.sum(), torch.ones(2)), RuntimeError,
     "One of the differentiated Tensors does not require grad"),
    (lambda: grad(LEAF.sum(), FURTHER, materialize_grads=True, allow_unused=False), ValueError,
     "Expected allow_unused to be True or not passed when materialize_grads=True"),
    (lambda: backward(LEAF.sum(), inputs=[]), RuntimeError,
     r"`inputs` argument to `backward\(\)` cannot be empty"),
    (lambda: backward([LEAF.sum(), FURTHER.sum()], [torch.tensor(1.0)]), RuntimeError,
     "got 2 tensors and 1 gradients"),
])
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.filterwarnings("ignore:`grad_variables` is deprecated")
def test_old_name_of_weights():
    x = torch.ones(2, requires_grad=True)
    backward(x * 3, grad_variables=torch.tensor([1.0, 2.0]))
    assert x.grad.tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="arguments both passed to"):
        backward(x.sum(), torch.tensor(1.0), grad_variables=torch.tensor(1.0))


def test_unused():
    assert grad(LEAF.sum(), [LEAF, FURTHER], allow_unused=True)[1] is None
    assert grad(LEAF.sum(), FURTHER, materialize_grads=True)[0].tolist() == [0.0] * 3
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        grad(LEAF.sum(), LEAF, only_inputs=False)


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
