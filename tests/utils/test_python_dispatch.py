import pytest

import flambeau
from flambeau.utils._mode_utils import no_dispatch
from flambeau.utils._python_dispatch import TorchDispatchMode, aten


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_ops_are_seen_below_composites():
    x = flambeau.ones(2, 2, requires_grad=True)
    with Log() as log:
        y = flambeau.matmul(x, x).exp() + 1
    assert log.names == ["mm.default", "exp.default", "detach.default", "add.Tensor"]
    assert y.grad_fn.name() == "AddBackward0"


def test_modes_nest_and_are_set_aside():
    with Log() as outer, Log() as inner:
        flambeau.ones(1).exp()
        with no_dispatch():
            flambeau.ones(1).sin()
    assert outer.names == inner.names == ["ones.default", "exp.default"]


def test_a_mode_replaces_results():
    class Seven(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return flambeau.full((), 7.0)
    with Seven():
        product = flambeau.ones(3) * 2
        with pytest.raises(RuntimeError, match=r"^Cannot cast tensor\(7\.\) to number"):
            product.item()
    assert product.item() == 7.0


def test_backward_is_seen():
    x = flambeau.ones(2, requires_grad=True)
    y = x.sin().sum()
    with Log() as log:
        y.backward()
    assert "cos.default" in log.names and log.names[0] == "ones_like.default"
    assert log.names[-1] == "detach.default"            # the gradient that the leaf keeps


def test_names():
    assert str(aten.mul.Tensor) == "aten.mul.Tensor"
    assert aten.mul.Tensor is aten.mul.Tensor and flambeau.ops.aten is aten
    assert repr(aten.exp.default) == "<OpOverload(op='aten.exp', overload='default')>"


def test_names_of_the_dispatcher_are_found_wherever_the_op_is():
    x = flambeau.arange(4.0)
    assert flambeau.equal(aten.amax.default(x, (0,), False), x.max())      # a family imported late
    assert aten.add_.Tensor(x, 1) is x and x[0] == 1                       # an in-place form
    assert aten.to.dtype(x, flambeau.int64).dtype == flambeau.int64        # a method
    assert str(aten.layer_norm.default) == "aten.layer_norm.default"       # of nn.functional
    assert flambeau.equal(aten.slice.Tensor(x, 0, 1, 3), x[1:3])
    assert callable(aten._sparse_addmm.default)                            # of flambeau.sparse
    with pytest.raises(NotImplementedError, match="aten::_cufft_get_plan_cache_size"):
        aten._cufft_get_plan_cache_size.default(0)
    with pytest.raises(AttributeError, match="'aten' object has no attribute 'ad'"):
        aten.ad


def test_numbers_that_a_node_has_saved_are_wrapped_in_its_derivative():
    seen = []

    class Overloads(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = flambeau.ones(3, requires_grad=True)
    y = x.mul(2).div(3).square()
    with Overloads():
        y.sum().backward()
    assert [s for s in seen if "mul" in s or "div" in s] == [
        "aten.mul.Scalar", "aten.mul.Tensor", "aten.div.Tensor", "aten.mul.Tensor"]


def test_arguments_without_defaults_are_passed():
    seen = []

    class See(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func.name(), len(args)))
            return func(*args, **(kwargs or {}))
    x = flambeau.ones(2, 2)
    with See():
        flambeau.cdist(x, x), flambeau.where(x > 0, x, 1.0)
    assert seen == [("aten::_cdist_forward", 4), ("aten::gt.Scalar", 2),
                    ("aten::scalar_tensor", 1), ("aten::where.self", 3)]


def test_no_dispatch_runs_ops_on_what_a_fake_tensor_is():
    from flambeau._subclasses.fake_tensor import FakeTensorMode
    mode = FakeTensorMode()
    for real in (flambeau.eye(2), flambeau.eye(2).to_sparse(), flambeau.eye(2).to_sparse_csr()):
        fake = mode.from_tensor(real)
        with no_dispatch():
            made = flambeau.zeros_like(fake, device="cpu")
        assert not isinstance(made, type(fake)) and made.device.type == "cpu"
        assert made.layout is real.layout and made.shape == real.shape
