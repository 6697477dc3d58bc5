"""Attention among the elements of each part of a nested tensor."""
import pytest

import flambeau as torch
from flambeau.nested import attention


@pytest.fixture
def parts():
    torch.manual_seed(0)
    return [torch.randn(3, 4), torch.randn(1, 4)]


def test_no_part_sees_another(parts):
    seen = []

    def attend(query, key, value, scale):
        seen.append(query.shape)
        return query + scale * value, key @ query.mT

    nested = torch.nested.nested_tensor(parts)
    result, weights = attention.attend(attend, nested, nested, nested, 2)
    assert seen == [(1, 3, 4), (1, 1, 4)]
    for found, part in zip(result.unbind(), parts):
        torch.testing.assert_close(found, 3 * part)
    assert weights.shape == (2, 3, 3)
    torch.testing.assert_close(weights[1, 0, 0], parts[1][0] @ parts[1][0])
    assert not weights[1, 1:].any() and not weights[1, :, 1:].any()


def test_without_weights(parts):
    nested = torch.nested.nested_tensor(parts)
    assert attention.attend(lambda q, k, v: (q, None), nested, nested, nested)[1] is None


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_the_layout_stays(parts, layout):
    nested = torch.nested.nested_tensor(parts, layout=layout)
    found = attention.encode(lambda part, factor: part * factor, nested, 5)
    assert found.layout is layout
    for mine, part in zip(found.unbind(), parts):
        torch.testing.assert_close(mine, 5 * part)
