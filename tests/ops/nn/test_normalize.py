"""Layers that `flambeau/ops/nn/normalize.py` computes."""
import pytest
from layer_tests import LayerTests
from layers import Cases

import flambeau as torch
from flambeau.autograd import forward_ad, gradcheck, gradgradcheck
from flambeau.nn import functional as F

cases = Cases()
simple = cases.simple
simple("layer_norm", lambda t, F, x, w, b: F.layer_norm(x, (4,), w, b), (2, 3, 4), (4,), (4,))
simple("layer_norm_two", lambda t, F, x: F.layer_norm(x, (3, 4)), (2, 3, 4))
simple("group_norm", lambda t, F, x, w, b: F.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,))
simple("group_norm_plain", lambda t, F, x: F.group_norm(x, 2), (2, 4, 2, 2))
simple("rms_norm", lambda t, F, x, w: F.rms_norm(x, (4,), w), (2, 3, 4), (4,))
simple("rms_norm_eps", lambda t, F, x: F.rms_norm(x, (3, 4), eps=0.1), (2, 3, 4))
simple("local_response_norm", lambda t, F, x: F.local_response_norm(x, 3, 0.5), (2, 4, 3))
simple("local_response_norm_4d", lambda t, F, x: F.local_response_norm(x, 2, 0.5), (2, 4, 2, 2))
simple("normalize", lambda t, F, x: F.normalize(x), (2, 3))
simple("normalize_p", lambda t, F, x: F.normalize(x, 3, 0), (2, 3))


class TestLayers(LayerTests):
    cases = cases


@pytest.mark.parametrize("normalized", [
    lambda x, w, b: F.group_norm(x, 2, w, b),
    lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)])
def test_the_bias_may_be_written_to_before_the_backward_pass(normalized):
    x, w, b = (torch.rand(*shape, requires_grad=True) for shape in ((2, 4, 3), (4,), (4,)))
    shift = b * 1
    y = normalized(x, w, shift)
    shift.mul_(2)
    y.sum().backward()
    assert torch.allclose(b.grad, torch.full((4,), 6.0))


def test_rms_norm_of_halves_is_rounded_at_the_end_alone():
    """Squares of these numbers are no float16: neither value nor tangent may be made of those."""
    x, t = torch.tensor([[300.0, -400.0]]), torch.tensor([[1.0, 0.0]])
    wide = torch.func.jvp(lambda x: F.rms_norm(x, (2,)), (x,), (t,))
    half = torch.func.jvp(lambda x: F.rms_norm(x, (2,)), (x.half(),), (t.half(),))
    for expected, found in zip(wide, half):
        assert found.dtype is torch.float16 and expected.abs().max() > 1e-3
        assert torch.allclose(found.float(), expected, rtol=1e-3, atol=1e-6)
    y = F.rms_norm(x.half().requires_grad_(), (2,))
    assert type(y.grad_fn).__name__ == "ToCopyBackward0"


@pytest.mark.parametrize("own", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("of_weight", [torch.float16, torch.float32, torch.float64])
def test_rms_norm_leaves_the_type_of_its_input(own, of_weight):
    x, weight = torch.tensor([[1.0, 2.0], [3.0, 4.5]]).to(own), torch.tensor([0.5, 1.5])
    result = torch.nn.functional.rms_norm(x, (2,), weight.to(of_weight), 0.0)
    assert result.dtype is own
    wide = x.double()
    expected = wide / wide.square().mean(1, keepdim=True).sqrt() * weight.double()
    torch.testing.assert_close(result, expected.to(own))


def test_statistics_have_no_tangents():
    """Those of `native_layer_norm` take no part in derivatives, in either mode."""
    x = torch.tensor([[1.0, 2.0, 4.0]], dtype=torch.float64)
    for i in (1, 2):
        _, tangent = torch.func.jvp(lambda x, i=i: torch.native_layer_norm(x, (3,), None, None,
                                                                           1e-5)[i], (x,), (x,))
        assert not tangent.any()


@pytest.mark.parametrize("normalized", [
    lambda x, w, b: torch.native_layer_norm(x, [3], w[:3], b[:3], 1e-5),
    lambda x, w, b: torch.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5),
    lambda x, w, b: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5),
    lambda x, w, b: torch.native_batch_norm(x, w, b, torch.arange(4.0).to(x), torch.ones(4).to(x),
                                            False, 0.1, 1e-5),
    lambda x, w, b: torch.ops.aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5)])
@pytest.mark.parametrize("affine", [True, False])
def test_derivatives_by_way_of_the_statistics(normalized, affine):
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    w, b = (torch.randn(4, dtype=torch.float64, requires_grad=affine) for _ in range(2))
    assert gradcheck(normalized, (x, w, b), check_forward_ad=True, check_batched_grad=True,
                     check_batched_forward_grad=True)
    assert gradgradcheck(normalized, (x, w, b), check_fwd_over_rev=True)


def test_batch_statistics_are_constants_in_both_modes():
    def normalized(x):
        return torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
    x = torch.randn(2, 4, 3, dtype=torch.float64)
    assert [r.requires_grad for r in normalized(x.requires_grad_())] == [True, False, False]
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x.detach().square())
        results = [forward_ad.unpack_dual(r) for r in normalized(dual)]
    assert [r.tangent is None for r in results] == [False, True, True]
    assert not any(r.primal.requires_grad for r in results[1:])


def test_of_no_elements_statistics_are_those_of_nothing():
    for x, size in ((torch.empty(0, 3), 3), (torch.empty(2, 0, dtype=torch.float64), 0)):
        y, mean, rstd = torch.native_layer_norm(x, [size], None, None, 1e-5)
        assert y.shape == x.shape and mean.shape == rstd.shape == (len(x), 1)
        assert not mean.any() and rstd.isnan().all() and rstd.dtype is x.dtype
    y, mean, rstd = torch.native_group_norm(torch.empty(0, 4, 2), None, None, 0, 4, 2, 2, 1e-5)
    assert y.shape == (0, 4, 2) and mean.shape == rstd.shape == (0, 2)
