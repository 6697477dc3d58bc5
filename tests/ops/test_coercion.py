"""Ways of spelling a call: other names of arguments, and the order of early versions."""
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flambeau as torch

m = torch.arange(4.0).reshape(2, 2)
v = torch.arange(2.0)
b = torch.arange(8.0).reshape(2, 2, 2)


@pytest.mark.parametrize("call, same", [
    (lambda: torch.logsumexp(m, axis=1), lambda: torch.logsumexp(m, 1)),
    (lambda: m.logsumexp(axis=1, keepdims=True), lambda: m.logsumexp(1, True)),
    (lambda: m.sum(axis=1, keepdims=True), lambda: m.sum(1, True)),
    (lambda: torch.mean(m, axis=(0, 1)), lambda: m.mean((0, 1))),
    (lambda: m.max(axis=0)[0], lambda: m.max(0)[0]),
    (lambda: m.argmin(axis=0), lambda: m.argmin(0)),
    (lambda: torch.std(m, axis=0, keepdims=True), lambda: m.std(0, keepdim=True)),
    (lambda: torch.any(m, axis=0), lambda: m.any(0)),
    (lambda: torch.softmax(m, axis=0), lambda: m.softmax(0)),
    (lambda: torch.cat([m, m], axis=1), lambda: torch.cat([m, m], 1)),
    (lambda: torch.cumsum(m, axis=1), lambda: m.cumsum(1)),
    (lambda: torch.stack([m, m], axis=1), lambda: torch.stack([m, m], 1)),
    (lambda: m.flip(dims=(0,)), lambda: m.flip(0)),
    (lambda: torch.flip(m, dims=[0, 1]), lambda: m.flip(0, 1)),
    (lambda: torch.permute(m, dims=(1, 0)), lambda: m.t()),
    (lambda: m[:1].expand(size=(2, 2)), lambda: m[:1].expand(2, 2)),
    (lambda: m.repeat(repeats=(2, 1)), lambda: m.repeat(2, 1)),
    (lambda: m.tile(dims=(2,)), lambda: m.tile(2)),
    (lambda: m.view(size=(4,)), lambda: m.view(4)),
    (lambda: m.view(dtype=torch.int32), lambda: m.view(torch.int32)),
    (lambda: torch.reshape(input=m, shape=(4,)), lambda: m.view(4)),
    (lambda: m.swapaxes(axis0=0, axis1=1), lambda: m.t()),
    (lambda: m.split(split_size=1)[1], lambda: m[1:]),
    (lambda: torch.tensor_split(m, sections=2)[1], lambda: m[1:]),
])
def test_other_names_of_arguments(call, same):
    assert torch.equal(call(), same())


def test_an_unknown_name_is_an_error_of_the_op():
    with pytest.raises(TypeError, match="unexpected keyword argument 'height'"):
        torch.logsumexp(m, 0, height=1)
    with pytest.raises(TypeError, match="got \\(int, int, size=tuple\\)"):
        m.view(2, 2, size=(4,))


@pytest.mark.parametrize("call, same", [
    (lambda: m.add(2, m), lambda: m + 2 * m),
    (lambda: torch.sub(m, 2, m), lambda: m - 2 * m),
    (lambda: m.clone().add_(2, m), lambda: m + 2 * m),
    (lambda: torch.addcmul(m, 2, m, m), lambda: m + 2 * m * m),
    (lambda: m.clone().addcdiv_(2, m, m + 1), lambda: m + 2 * m / (m + 1)),
    (lambda: torch.addmm(2, m, 3, m, m), lambda: 2 * m + 3 * (m @ m)),
    (lambda: torch.addmm(2, m, m, m), lambda: 2 * m + m @ m),
    (lambda: v.addmv(2, 3, m, v), lambda: 2 * v + 3 * (m @ v)),
    (lambda: m.addr(2, 3, v, v), lambda: 2 * m + 3 * torch.outer(v, v)),
    (lambda: m.clone().addbmm_(2, 3, b, b), lambda: 2 * m + 3 * (b @ b).sum(0)),
    (lambda: b.baddbmm(2, 3, b, b), lambda: 2 * b + 3 * (b @ b)),
])
def test_numbers_between_the_tensors(call, same):
    torch.set_warn_always(True)             # whether an earlier test has seen it or not
    try:
        with pytest.warns(UserWarning, match="This overload of .* is deprecated"):
            result = call()
    finally:
        torch.set_warn_always(False)
    torch.testing.assert_close(result, same())


def test_numbers_that_do_not_fit():
    with pytest.raises(TypeError):
        m.add(m, m, m)
    with pytest.raises(TypeError):
        torch.addcmul(m, 2, 2, m, m)


LONG, FLOAT = torch.ones(3, dtype=torch.int64), torch.ones(3)


@pytest.mark.parametrize("write, message", [
    (lambda: LONG.__iand__(torch.ones(2)), r"size of tensor a \(3\) must match"),
    (lambda: LONG.__iand__(FLOAT), "result type Float can't be cast to the desired output type Lo"),
    (lambda: LONG.__imod__(1j), "result type ComplexFloat can't be cast"),
    (lambda: FLOAT[:1].__ifloordiv__(FLOAT[:2] * 1j), "output with shape .1. doesn't match"),
    (lambda: FLOAT & torch.ones(2), r"size of tensor a \(3\) must match"),
])
def test_shapes_and_types_are_looked_at_before_kernels(write, message):
    with pytest.raises(RuntimeError, match=message):
        write()


def test_powers_in_double_precision():
    x = torch.tensor([1.0, 2.0])
    assert torch.float_power(x, 2).dtype is torch.float64
    assert torch.float_power(2, x).tolist() == [2, 4]
    assert torch.float_power(x, 1j).dtype is torch.complex128
    wide = x.double()
    assert wide.float_power_(wide) is wide
    assert wide.tolist() == [1, 4]
    with pytest.raises(RuntimeError, match="the base given to float_power_ has dtype Float but the "
                                           "operation's result requires dtype Double"):
        x.float_power_(2)
    with pytest.raises(RuntimeError, match="the output given to float_power has dtype Float"):
        torch.float_power(x, 2, out=torch.empty(2))


def test_annotations_of_tensors_are_the_class():
    import inspect
    for function in (torch.nn.functional.conv1d, torch.nn.functional.normalize, torch.add):
        assert next(iter(inspect.signature(function).parameters.values())).annotation \
            in (torch.Tensor, "Any")


@pytest.mark.parametrize("name", ["mul_", "add_", "sub_", "div_", "pow_", "atan2_"])
def test_an_inplace_result_of_a_wider_type_has_the_node_of_the_op(name):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    other = torch.tensor([2.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)
    result = getattr(x * 1, name)(other)
    assert result.dtype is torch.float32
    assert result.grad_fn.name()[:-1].lower() == f"{name[:-1]}backward"
    wide = getattr(x.double(), name[:-1])(other)
    for got, expected in zip(torch.autograd.grad(result.sum(), (x, other)),
                             torch.autograd.grad(wide.sum(), (x, other))):
        torch.testing.assert_close(got, expected)


def test_other_names_of_functions_take_out_as_these_do():
    x, out = torch.tensor([0.5, 0.25]), torch.empty(2)
    assert torch.arccos(x, out=out) is out
    assert out.tolist() == torch.acos(x).tolist()
    with pytest.raises(TypeError, match=r"arccos\(\): argument 'out' must be Tensor, not int"):
        torch.arccos(x, out=1)


def test_softmax_as_a_special_function_says_so():
    x = torch.tensor([[0.0, 1.0], [2.0, 5.0]], requires_grad=True)
    assert torch.equal(torch.special.softmax(x, 1), torch.softmax(x, 1))
    assert torch.special.log_softmax(x, 0, dtype=torch.float64).dtype is torch.float64
    assert torch.special.softmax(x, 0).grad_fn.name() == "SoftmaxBackward0"
    with pytest.raises(TypeError, match=r"special_softmax\(\): argument 'dim' \(position 2\) must"):
        torch.special.softmax(x, "a")


@given(st.permutations(range(3)), st.sampled_from([1, 2]), st.sampled_from([torch.exp, torch.eq]))
def test_outputs_keep_the_order_of_operands(dims, step, op):
    x = torch.randn(2, 3, 4 * step)[:, :, ::step].permute(dims)
    args = (x,) if op is torch.exp else (x, x)
    plain = op(*args)
    assert op(*args, out=torch.empty(0, dtype=plain.dtype)).stride() == plain.stride()


def test_moduli_may_be_stored_as_complex_numbers():
    z = torch.tensor([3 + 4j])
    assert torch.abs(z, out=torch.empty(1, dtype=torch.complex64)).tolist() == [5]
    with pytest.raises(RuntimeError, match="Found dtype ComplexDouble but expected ComplexFloat"):
        torch.abs(z, out=torch.empty(1, dtype=torch.complex128))
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.abs(torch.ones(1), out=torch.empty(1, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="expects exponent to have int dtype but got long int"):
        torch.frexp(torch.ones(1), out=(torch.empty(1), torch.empty(1, dtype=torch.int64)))


def test_several_results_in_out_are_of_a_class_of_their_own():
    x = torch.tensor([2.0, 1.0])
    for name in ("sort", "cummax"):
        values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
        found = getattr(torch, name)(x, 0, out=(values, places))
        assert type(found) is getattr(torch.return_types, f"{name}_out")
        assert found.values is values and f"torch.return_types.{name}_out(" in repr(found)


def test_clamped_by_numbers_the_type_of_out_is_that_of_the_result():
    x, out = torch.ones(2, dtype=torch.float64), torch.empty(2)
    for call in (lambda: torch.clamp(x, 0, out=out), lambda: torch.clip(x, max=0, out=out),
                 lambda: torch.clamp_min(x, 0, out=out)):
        with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
            call()
    assert torch.clamp(x, torch.zeros(()), out=out) is out


def test_out_on_meta_is_not_written_and_takes_the_layout_of_the_result():
    x = torch.empty(4, 3, 8, 8, device="meta", memory_format=torch.channels_last)
    upsample = torch._C._nn.upsample_nearest2d
    kept = torch.empty(4, 3, 16, 16, device="meta")
    assert upsample(x, (16, 16), out=kept) is kept and kept.is_contiguous()
    sized = torch.empty(0, device="meta")
    upsample(x, (16, 16), out=sized)
    assert sized.shape == (4, 3, 16, 16)
    assert sized.is_contiguous(memory_format=torch.channels_last)
    square = torch.empty(3, 3, device="meta")
    rows = torch.empty(3, 3, device="meta").t()
    assert torch.add(square, square, out=rows).stride() == (1, 3)


@pytest.mark.parametrize("name, arguments, said", [
    ("upsample_nearest2d", [(8, 8)], "Expected out tensor to have dtype float, but got double"),
    ("upsample_bilinear2d", [(8, 8), False],
     "Expected out tensor to have dtype float, but got double instead"),
    ("adaptive_avg_pool2d", [(2, 2)], "expected dtype float for `output` but got dtype double"),
    ("reflection_pad2d", [(1, 1, 1, 1)], "expected scalar type Float but found Double"),
    ("replication_pad2d", [(1, 1, 1, 1)], "Expected out tensor to have dtype float"),
    ("im2col", [(1, 1), (1, 1), (0, 0), (1, 1)], "expected scalar type Float but found Double"),
    *[(name, [], "Found dtype Double but expected Float")
      for name in ("elu", "leaky_relu", "hardsigmoid", "hardtanh", "silu", "mish")]])
def test_layers_refuse_an_out_of_another_type(name, arguments, said):
    x, function = torch.rand(1, 1, 4, 4), getattr(torch._C._nn, name)
    with pytest.raises(RuntimeError, match=said):
        function(x, *arguments, out=torch.empty(0, dtype=torch.float64))
    assert function(x, *arguments, out=torch.empty(0)).dtype is torch.float32


@pytest.mark.parametrize("name, arguments", [("upsample_nearest2d", [(8, 8)]), ("silu", [])])
def test_on_meta_python_says_what_out_has_to_be(name, arguments):
    out = torch.empty(0, dtype=torch.float64, device="meta")
    with pytest.raises(RuntimeError, match=r"have dtype torch\.float32 but got torch\.float64"):
        getattr(torch._C._nn, name)(torch.rand(1, 1, 4, 4, device="meta"), *arguments, out=out)
    x = torch.rand(4, device="meta")
    assert torch._C._nn.elu(x, out=out).dtype is torch.float64      # its kernel would say it


@given(st.permutations(range(4)), st.sampled_from([0, 1, 2, 3]))
def test_memory_that_out_gets_is_laid_out_as_the_result(dims, dim):
    x = torch.arange(24.0).reshape(1, 2, 3, 4).permute(*dims)
    for op, args in ((torch.cat, ([x, x], dim)), (torch.cumsum, (x, dim)), (torch.mul, (x, x)),
                     (torch.sort, (x, dim)), (torch.linalg.inv, (torch.eye(3).expand(2, 3, 3),))):
        wanted = op(*args)
        first = wanted[0] if isinstance(wanted, tuple) else wanted
        outs = [torch.empty(0, dtype=r.dtype) for r in
                (wanted if isinstance(wanted, tuple) else [wanted])]
        op(*args, out=outs[0] if len(outs) == 1 else tuple(outs))
        assert outs[0].stride() == first.stride(), op


def test_memory_that_out_gets_row_by_row():
    a, column = torch.eye(3), torch.zeros(3, 3, 2)
    for op in (torch.linalg.householder_product, torch.ormqr, torch.geqrf, torch.cholesky_inverse):
        args = {torch.linalg.householder_product: (a, torch.ones(3)),
                torch.ormqr: (a, torch.ones(3), a)}.get(op, (a,))
        for out, strides in ((torch.empty(0), (1, 3)), (column.clone(), (3, 1))):
            op(*args, out=(out, torch.empty(0)) if op is torch.geqrf else out)
            assert out.stride() == strides, op
    z = torch.zeros(2, 3, 4, dtype=torch.complex64)
    assert torch.fft.fft(z, dim=1).stride() == (12, 1, 3)
    assert torch.fft.fft(z, dim=1, out=z.new_empty(0)).stride() == (12, 4, 1)
    assert torch.fft.ifft(z.real, dim=1, out=z.new_empty(0)).stride() == (12, 1, 3)


def test_out_of_lists_gives_nothing():
    outs = torch.empty(3), torch.empty(3)
    assert torch.unbind_copy(torch.arange(6.0).view(2, 3), 0, out=outs) is None
    assert outs[1].tolist() == [3, 4, 5]
    with pytest.raises(RuntimeError, match="unbind_copy_int_out expected an out= argument of size "
                       "2, got size 1"):
        torch.unbind_copy(torch.zeros(2, 3), 0, out=outs[:1])


def test_out_of_ranges_keeps_its_shape():
    assert torch.linspace(0, 3, 4, out=torch.empty(2, 2)).tolist() == [[0, 1], [2, 3]]
    assert torch.arange(4, out=torch.empty(2, 2)).tolist() == [[0, 1], [2, 3]]
    assert torch.linspace(0, 1, 0, out=torch.empty(0, 2)).shape == (0, 2)


@pytest.mark.parametrize("call, message", [
    (lambda x: torch.diff(x, out=torch.empty(3, dtype=torch.int64)), "result type Float can't be"),
    (lambda x: torch.mean(x, out=torch.empty((), dtype=torch.int64)), r"mean.dtype_out\(\): input"),
    (lambda x: torch.mean(x.double(), 0, out=torch.empty((), dtype=torch.int64)),
     "result type Float can't be cast to the desired output type Long"),
    (lambda x: torch.matmul(x, x, out=torch.empty((), dtype=torch.float64)),
     "result dtype Double does not match input dtype Float"),
    (lambda x: torch.linalg.matrix_power(torch.eye(2), 2, out=torch.eye(2).double()),
     "Expected out tensor to have dtype float, but got double instead"),
    (lambda x: torch.linalg.matrix_power(torch.eye(2), 2, out=torch.eye(2).requires_grad_()),
     r"matmul\(\): functions with out=..."),
    (lambda x: torch.diag(x, out=torch.zeros(4, 4).requires_grad_()), r"aten::diag_embed\(\)"),
    (lambda x: torch.normal(x, x.exp(), out=torch.empty(4).requires_grad_()), r"normal\(\): "),
    (lambda x: torch.normal(0.0, 1.0, (4,), dtype=torch.float64, out=torch.empty(4)),
     "dtype Double does not match dtype of out parameter"),
    (lambda x: torch.empty((4,), out=torch.empty(4).requires_grad_()),
     "cannot resize variables that require grad"),
    (lambda x: torch.nonzero(x, as_tuple=True, out=torch.empty(0, dtype=torch.int64)),
     "nonzero does not support the out kwarg when as_tuple is True"),
    (lambda x: torch.median(x, 0, out=(torch.empty(()), torch.empty(()))),
     "Expected tensor for argument #1 'indices' to have scalar type Long"),
])
def test_what_is_said_of_out(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(torch.arange(4.0))


def test_numbers_are_drawn_in_the_type_of_out():
    mean, out = torch.zeros(20, dtype=torch.float64), torch.empty(20)
    torch.manual_seed(0)
    torch.normal(mean, 1.0, out=out)
    torch.manual_seed(0)
    assert torch.equal(out, torch.normal(mean.float(), 1.0))
    assert torch.normal(0.0, 1.0, (3,), out=torch.empty(3)).dtype is torch.float32
