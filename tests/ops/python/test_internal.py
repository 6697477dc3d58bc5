"""Functions that libraries call though they are not documented, as PyTorch 2.13 answers."""

import pytest

import flambeau as torch


def test_shapes_and_casts():
    assert torch._shape_as_tensor(torch.ones(2, 3)).tolist() == [2, 3]
    assert torch._shape_as_tensor(torch.tensor(1.0)).dtype is torch.int64
    assert torch._cast_Long(torch.tensor([1.5, 2.5])).tolist() == [1, 2]
    assert torch._cast_Float(torch.tensor([1, 2]), non_blocking=True).dtype is torch.float32
    with pytest.raises(TypeError, match=r"argument 'input' .* must be Tensor, not int"):
        torch._cast_Half(3)


def test_indices_of_rows():
    rows = torch.tensor([0, 0, 1, 3])
    assert torch._convert_indices_from_coo_to_csr(rows, 4).tolist() == [0, 2, 3, 3, 4]
    assert torch._convert_indices_from_coo_to_csr(rows, 4, out_int32=True).dtype is torch.int32
    starts, columns = torch.tensor([0, 2, 3, 3, 4]), torch.tensor([0, 1, 2, 1])
    places = [[0, 0, 1, 3], [0, 1, 2, 1]]
    assert torch._convert_indices_from_csr_to_coo(starts, columns).tolist() == places
    turned = torch._convert_indices_from_csr_to_coo(starts, columns, transpose=True)
    assert turned.tolist() == places[::-1]
    stack = torch._convert_indices_from_csr_to_coo(starts[None, :3], columns[None, :3])
    assert stack.tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="supposed to be a vector, but got 2 dimensional"):
        torch._convert_indices_from_coo_to_csr(torch.ones(2, 2, dtype=torch.long), 4)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        torch._convert_indices_from_coo_to_csr(torch.ones(2), 4)


def test_gradients_are_unscaled_and_checked():
    grads, found = [torch.tensor([2.0, 4.0]), torch.tensor([float("inf")])], torch.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(grads[:1], found, torch.tensor(0.5))
    assert grads[0].tolist() == [1.0, 2.0] and found.item() == 0
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, torch.tensor(0.5))
    assert grads[0].tolist() == [0.5, 1.0] and found.item() == 1
    for found_inf, inverse, message in (
            (torch.zeros(2), torch.ones(1), "found_inf must be a 1-element tensor"),
            (torch.zeros(1), torch.ones(2), "inv_scale must be a 1-element tensor"),
            (torch.zeros(1), torch.ones(1, dtype=torch.float64), "inv_scale must be a float")):
        with pytest.raises(RuntimeError, match=message):
            torch._amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inverse)


def test_scales_adapt():
    scale, steps = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32)
    seen = []
    for overflow in (0.0, 0.0, 1.0):
        torch._amp_update_scale_(scale, steps, torch.tensor(overflow), 2.0, 0.5, 2)
        seen.append((scale.item(), steps.item()))
    assert seen == [(8.0, 1), (16.0, 0), (8.0, 0)]
    large = torch.tensor(3e38)
    torch._amp_update_scale_(large, torch.tensor(1, dtype=torch.int32), torch.tensor(0.0), 2.0,
                             0.5, 2)
    assert large.isfinite()
    with pytest.raises(RuntimeError, match="growth_tracker must be an int tensor"):
        torch._amp_update_scale_(scale, torch.tensor(0), torch.tensor(0.0), 2.0, 0.5, 2)


def test_optimizers_that_unscale_themselves_are_told_how():
    seen = []

    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            seen.append((self.grad_scale.item(), self.found_inf.item()))

    weight = torch.ones(1, requires_grad=True)
    optimizer = Own([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=16.0)
    for factor in (1.0, float("inf")):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert seen == [(16.0, 0.0), (16.0, 1.0)] and scaler.get_scale() == 8.0
    assert not hasattr(optimizer, "grad_scale")


def test_what_is_gone_says_what_to_use():
    x = torch.eye(2)
    for name, instead in (("solve", "torch.linalg.solve"), ("eig", "torch.linalg.eig"),
                          ("symeig", "torch.linalg.eigh"), ("lstsq", "torch.linalg.lstsq"),
                          ("matrix_rank", "torch.linalg.matrix_rank")):
        with pytest.raises(RuntimeError, match=f"(?s)is now removed.*{instead}"):
            getattr(torch, name)(x, x) if name in ("solve", "lstsq") else getattr(torch, name)(x)


@pytest.mark.parametrize(("name", "args"), [
    ("cudnn_convolution", (torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), [0, 0], [1, 1], [1, 1],
                           1, False, False, False)),
    ("cudnn_grid_sampler", (torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 2))),
    ("batch_norm_stats", (torch.ones(2, 2), 1e-5))])
def test_ops_of_other_devices(name, args):
    with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}' .* the 'CPU'"):
        getattr(torch, name)(*args)
    with pytest.raises(TypeError, match=rf"{name}\(\)"):
        getattr(torch, name)("a")
    assert torch.cudnn_is_acceptable(torch.ones(1)) is torch.is_vulkan_available() is False


def test_ranges_and_copies():
    torch.sym_constrain_range(3, min=1)
    with pytest.raises(RuntimeError, match=r"Invalid value range for 3 between \[4, 92"):
        torch.sym_constrain_range(3, min=4)
    a = torch.ones(2)
    assert torch._has_compatible_shallow_copy_type(a, torch.nn.Parameter(torch.ones(3)))
    assert not torch._has_compatible_shallow_copy_type(a, a.to_sparse())
    assert not torch._has_compatible_shallow_copy_type(a, a.to("meta"))


def test_products_and_nested_views():
    parts = torch._nested_view_from_buffer(
        torch.arange(9.0), torch.tensor([[2, 3], [1, 3]]), torch.tensor([[3, 1], [3, 1]]),
        torch.tensor([0, 6])).unbind()
    assert [part.tolist() for part in parts] == [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
                                                 [[6.0, 7.0, 8.0]]]
    found = torch._grouped_mm(torch.ones(4, 8), torch.ones(2, 8, 8),
                              offs=torch.tensor([2, 4], dtype=torch.int32))
    assert found.shape == (4, 8) and found.unique().tolist() == [8.0]


def test_masked_and_safe_softmax():
    x = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0]], requires_grad=True)
    mask = torch.tensor([[False, True, False], [True, True, True]])
    found = torch._masked_softmax(x, mask, 1)           # masked out where the mask is true
    low, high = 1 / (1 + torch.e ** 2), torch.e ** 2 / (1 + torch.e ** 2)
    assert torch.allclose(found[0], torch.tensor([low, 0.0, high])) and found[1].isnan().all()
    grad, = torch.autograd.grad(found[0, 2], x)
    assert torch.allclose(grad[0], torch.tensor([-low * high, 0.0, low * high]))
    per_row = torch._masked_softmax(torch.zeros(2, 1, 2, 2), mask[:, :2], 3, 1)
    assert per_row[0, 0].tolist() == [[1.0, 0.0]] * 2
    with pytest.raises(RuntimeError, match="Mask should be a boolean tensor"):
        torch._masked_softmax(x, mask.int(), 1)
    with pytest.raises(RuntimeError, match="For mask_type == 2 mask shape should match"):
        torch._masked_softmax(x, mask[0], 1)
    nothing = torch.full((1, 2), -torch.inf)
    assert torch._safe_softmax(nothing, 1).tolist() == [[0.0, 0.0]]
    assert torch.allclose(torch._safe_softmax(x, 1), torch.softmax(x, 1))


def test_other_names_of_ops():
    assert torch.equal(torch._efficientzerotensor((2, 3), dtype=torch.int64),
                       torch.zeros(2, 3, dtype=torch.int64))
    x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    assert torch._nnpack_available()
    found = torch._nnpack_spatial_convolution(x, w, None, 0)
    assert torch.equal(found, torch.full((1, 1, 2, 2), 4.0))
    grid = torch.zeros(1, 1, 1, 2)
    assert torch._grid_sampler_2d_cpu_fallback(x, grid, 0, 0, False).item() == 1
    table, where = torch.ones(3, 2, requires_grad=True), torch.tensor([0, 2])
    bags = torch._embedding_bag_forward_only(table, where, torch.tensor([0]))
    assert bags[0].tolist() == [[2, 2]] and not bags[0].requires_grad
