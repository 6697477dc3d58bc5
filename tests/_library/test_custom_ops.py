"""Ops made of functions: `custom_op`."""
import pytest

import flambeau as torch

X = torch.tensor([1.0, 2.0])


def make(name, **options):
    @torch.library.custom_op(f"mirror_custom::{name}", mutates_args=(), **options)
    def op(x: torch.Tensor, n: int = 2) -> torch.Tensor:
        return x * n
    return op


def test_it_is_an_op():
    op = make("plain")
    assert op(X).tolist() == [2, 4] == torch.ops.mirror_custom.plain(X).tolist()
    assert op(X, n=3).tolist() == [3, 6]
    assert repr(op) == "<CustomOpDef(mirror_custom::plain)>"
    assert str(op._opoverload._schema) == "mirror_custom::plain(Tensor x, SymInt n=2) -> Tensor"


def test_derivatives():
    op = make("derived")
    x = X.double().requires_grad_()
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        op(x).sum().backward()

    def save(ctx, inputs, output):
        ctx.n = inputs[1]
    op.register_autograd(lambda ctx, grad: (grad * ctx.n, None), setup_context=save)
    assert torch.autograd.gradcheck(op, (x, 3)) and torch.autograd.gradgradcheck(op, (x, 3))


def test_batches():
    op = make("batched")
    assert torch.vmap(op)(X).tolist() == [2, 4]                 # in a loop

    @op.register_vmap
    def _(info, dims, x, n=2):
        assert info.batch_size == 2 and dims[0] == 0
        return -op(x, n), 0
    assert torch.vmap(op)(X).tolist() == [-2, -4]


def test_kernels_of_devices_and_switches():
    op = make("devices", device_types="cpu")
    op.register_kernel("meta")(lambda x, n=2: x.new_empty(7))
    assert op(X).tolist() == [2, 4] and op(X.to("meta")).shape == (7,)
    op.register_kernel("cpu")(lambda x, n=2: x - n)
    with op.set_kernel_enabled("cpu", False):
        assert op(X).tolist() == [2, 4]
    assert op(X).tolist() in ([-1, 0], [2, 4])


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: torch.library.custom_op("mirror_custom::kw", lambda x: x, mutates_args=()),
     ValueError, "must have a type annotation"),
])
def test_what_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
