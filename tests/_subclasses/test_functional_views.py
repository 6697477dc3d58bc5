"""Writes go back through views."""
import pytest

import flambeau as torch
from flambeau._subclasses.functional_views import View

aten = torch.ops.aten


@pytest.mark.parametrize("func, args, index", [
    (aten.select.int, (1, 2), None), (aten.slice.Tensor, (0, 1, 3), None),
    (aten.diagonal.default, (1,), None), (aten.as_strided.default, ((2, 2), (3, 1), 1), None),
    (aten.split.Tensor, (2, 0), 1), (aten.split_with_sizes.default, ([1, 3], 0), 1),
    (aten.unbind.int, (1,), 2), (aten.permute.default, ([1, 0],), None),
    (aten.transpose.int, (0, 1), None), (aten.t.default, (), None),
    (aten.unsqueeze.default, (1,), None), (aten.view.default, ([2, 6],), None),
    (aten.unfold.default, (0, 2, 2), None)])
def test_what_is_put_back_is_seen_through_the_view(func, args, index):
    base = torch.arange(12.0).reshape(4, 3)
    view = View(func, args, {}, index=index)
    seen = view.of(base)
    value = torch.randn(seen.shape)
    written = view.put_back(base, value)
    wanted = base.clone()
    view.of(wanted).copy_(value)
    assert torch.equal(view.of(written), value) and torch.equal(written, wanted)
    assert torch.equal(base, torch.arange(12.0).reshape(4, 3))
