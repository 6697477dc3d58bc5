"""Ops as modes below autograd are asked for them, and the nodes that record the answers."""

import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    """Notes the names of the ops, and lets `change` make other results."""

    def __init__(self, change=None):
        super().__init__()
        self.names, self.change = [], change

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func))
        if self.change is not None:
            return self.change(func, args, kwargs or {})
        return func(*args, **kwargs or {})


def test_forward_and_backward_are_shown_op_by_op():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with Log() as log:
        y = (x * x).sum()
        forward = list(log.names)
        y.backward()
    assert forward == ["aten.mul.Tensor", "aten.sum.default"]
    assert "aten.expand.default" in log.names and x.grad.tolist() == [2.0, 4.0]


def test_what_a_mode_answers_has_the_gradient_of_the_op():
    def doubled(func, args, kwargs):
        return func(*args, **kwargs) * 2 if str(func) == "aten.exp.default" else func(
            *args, **kwargs)
    x = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    with Log(doubled):
        y = x.exp()
    y.backward()
    torch.testing.assert_close(y.detach(), 2 * x.detach().exp())
    torch.testing.assert_close(x.grad, y.detach())          # exp saves its result


def test_writes_are_shown_as_writes_and_keep_their_history():
    x = torch.ones(2, requires_grad=True)
    with Log() as log:
        y = x * 3
        y.mul_(2)
        y.sum().backward()
    assert log.names[:2] == ["aten.mul.Tensor", "aten.mul_.Tensor"]
    assert x.grad.tolist() == [6.0, 6.0] and y._version == 1


def test_views_stay_views():
    x = torch.zeros(2, 3)
    with Log() as log:
        row = x[1]
        row.fill_(5)
    assert log.names == ["aten.select.int", "aten.fill_.Scalar"]
    assert row._base is x and x[1].tolist() == [5.0, 5.0, 5.0]


def test_a_view_of_what_requires_grad_is_written_through():
    x = torch.ones(2, 2, requires_grad=True)
    with Log():
        y = x * 1
        y[0].mul_(4)
        y.sum().backward()
    assert x.grad.tolist() == [[4.0, 4.0], [1.0, 1.0]]


def test_second_derivatives():
    x = torch.tensor(2.0, requires_grad=True)
    with Log():
        first, = torch.autograd.grad(x ** 3, x, create_graph=True)
        second, = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_errors_of_a_mode_reach_the_program():
    def refuse(func, args, kwargs):
        raise LookupError(str(func))
    x = torch.ones(1)
    with pytest.raises(LookupError, match=r"aten\.neg\.default"), Log(refuse):
        x.neg()
    assert x.neg().item() == -1.0


def test_reading_a_number_is_shown():
    class Names(TorchDispatchMode):
        def __init__(self):
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))
    x = torch.tensor([3.0])
    for read in (torch.Tensor.item, bool, float, int, torch.Tensor.is_nonzero):
        with Names() as names:
            assert read(x) == read(3.0) if isinstance(read, type) else read(x)
        assert names.seen == ["aten._local_scalar_dense.default"]


class Calls(TorchDispatchMode):
    """Notes the overloads, and computes what they do."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((str(func), args, kwargs or {}))
        return func(*args, **kwargs or {})

    @property
    def names(self):
        return [name for name, _, _ in self.calls]


@pytest.mark.parametrize("name", ["add", "mm", "exp", "maximum", "sum", "cumsum", "pow", "stack",
                                  "softmax", "sort", "max"])
def test_results_written_to_tensors_are_shown_so(name):
    """The overload that PyTorch has for `out=`, which is what the call gives."""
    x = torch.tensor([[4.0, 1.0], [2.0, 3.0]])
    more = {"sum": (0,), "cumsum": (0,), "pow": (2,), "softmax": (0,), "max": (1,), "exp": (),
            "stack": (), "sort": ()}.get(name, (x,))
    function, first = getattr(torch, name), [x] if name == "stack" else x
    plain = function(first, *more)
    outs = tuple(map(torch.empty_like, plain)) if isinstance(plain, tuple) else \
        torch.empty_like(plain)
    with Calls() as seen:
        found = function(first, *more, out=outs)
    (overload, _, given), = seen.calls
    schema = getattr(getattr(torch.ops.aten, name), overload.split(".")[2])._schema
    names = [a.name for a in schema.arguments if a.is_out]
    wanted = outs if isinstance(outs, tuple) else (outs,)
    assert [given[n] for n in names] == [*wanted] and len(names) == len(wanted)
    for one, expected in zip(wanted, plain if isinstance(plain, tuple) else (plain,)):
        assert torch.equal(one, expected)
    assert found is outs or all(a is b for a, b in zip(found, outs))


def test_lists_are_one_op():
    xs = [torch.ones(2), torch.ones(3)]
    with Calls() as seen:
        torch._foreach_mul_(torch._foreach_add(xs, 1), [2.0, 3.0])
        torch.nn.utils.get_total_norm(xs)
    assert seen.names == ["aten._foreach_add.Scalar", "aten._foreach_mul_.ScalarList",
                          "aten._foreach_norm.Scalar", "aten.stack.default",
                          "aten.linalg_vector_norm.default"]


def test_gradients_are_summed_before_they_reach_a_leaf_which_keeps_what_nobody_else_has():
    x = torch.ones(2, 3, requires_grad=True)
    with Calls() as seen:
        (x.sin() + x.cos()).backward(torch.ones(2, 3))
    assert seen.names[-2:] == ["aten.add.Tensor", "aten.detach.default"]
    with Calls() as seen:
        x.grad = None
        x.sum().backward()                  # what arrives is laid out otherwise
    assert seen.names[-2:] == ["aten.new_empty_strided.default", "aten.copy_.default"]
    assert "pin_memory" not in seen.calls[-2][2] and x.grad.tolist() == [[1.0] * 3] * 2
    with Calls() as seen:
        x.sum().backward()
    assert seen.names[-1] == "aten.add_.Tensor" and x.grad.tolist() == [[2.0] * 3] * 2


def test_composites_pass_on_what_is_stated_as_native_code_does():
    """Numbers are numbers there, and options that nobody has given are left out."""
    x = torch.ones(2)
    with Calls() as seen:
        torch.isclose(x, x)
    assert {"aten.mul.Scalar", "aten.add.Scalar"} < set(seen.names)
    with Calls() as seen:
        torch.where(x > 0, x, 0.0)
        x.requires_grad_().clamp(min=0.5).sum().backward()
    made = [given for name, _, given in seen.calls if name == "aten.scalar_tensor.default"]
    assert [sorted(given) for given in made] == [["device", "dtype", "layout"]] * 2


def test_a_mode_computes_outside_of_the_composite_that_it_sees():
    class Doubling(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found = func(*args, **(kwargs or {}))
            return found * 2 if func is torch.ops.aten.abs.default else found
    with Calls() as outer, Doubling():
        torch.isclose(torch.ones(1), torch.ones(1))
    assert "aten.mul.Tensor" in outer.names


@pytest.mark.parametrize("call, name, dims", [
    (lambda x: x.softmax(-1), "aten._softmax_backward_data.default", [-1]),
    (lambda x: x.log_softmax(1), "aten._log_softmax_backward_data.default", [1]),
    (lambda x: x.transpose(0, -1), "aten.transpose.int", [0, -1]),
    (lambda x: x.unsqueeze(-1), "aten.squeeze.dim", [-1])])
def test_derivatives_count_dimensions_as_the_call(call, name, dims):
    x = torch.ones(2, 3, requires_grad=True)
    y = None
    with Calls() as seen:
        y = call(x)
        before = len(seen.calls)
        y.backward(torch.ones_like(y))
    args = next(args for found, args, _ in seen.calls[before:] if found == name)
    assert [a for a in args if type(a) is int] == dims


def test_gradients_of_products_by_numbers_take_the_same_overload():
    x = torch.ones(2, requires_grad=True)
    with Calls() as seen:
        torch.ops.aten.mul.Scalar(x, 2).sum().backward()
    assert seen.names.count("aten.mul.Scalar") == 2
    with Calls() as seen:
        (x * 2).sum().backward()
    assert seen.names.count("aten.mul.Tensor") == 2


@pytest.mark.parametrize("call, names", [
    (torch.linalg.det, ["_linalg_det.default"]),
    (torch.linalg.slogdet, ["_linalg_slogdet.default"]),
    (torch.linalg.svd, ["_linalg_svd.default"]),
    (torch.linalg.eigvalsh, ["_linalg_eigh.default"]),
    (torch.linalg.inv, ["linalg_inv_ex.default", "_linalg_check_errors.default"])])
def test_linear_algebra_is_shown_by_the_ops_that_compute_it(call, names):
    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    with Calls() as seen:
        found = call(x)
    assert seen.names == [f"aten.{name}" for name in names]
    torch.testing.assert_close(found, call(x))


def test_tensors_like_slices_are_made_together():
    with Calls() as seen:
        found = torch.func.vmap(lambda x: torch.zeros_like(x) + x)(torch.ones(2, 3))
    (_, args, _), *_ = [one for one in seen.calls if one[0] == "aten.zeros_like.default"]
    assert args[0].shape == (2, 3) and found.tolist() == [[1.0] * 3] * 2


def test_steps_of_recurrent_networks_write_to_what_nobody_else_has():
    cell, x = torch.nn.GRUCell(2, 2), torch.ones(1, 2)
    plain = cell(x)
    with Calls() as seen:
        found = cell(x)
    assert seen.names.count("aten.sigmoid_.default") == 2 and "aten.tanh_.default" in seen.names
    torch.testing.assert_close(found, plain)
    gradients = [torch.autograd.grad(y.sum(), list(cell.parameters())) for y in (found, plain)]
    torch.testing.assert_close(*gradients)
