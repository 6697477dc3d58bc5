"""Named tuples of several results."""

import pytest

import flambeau as torch


@pytest.mark.parametrize("call, name, fields", [
    (lambda x: x.max(0), "max", ("values", "indices")),
    (lambda x: torch.linalg.eigh(x @ x.T), "linalg_eigh", ("eigenvalues", "eigenvectors")),
    (lambda x: x.sort(), "sort", ("values", "indices")),
    (lambda x: torch.linalg.slogdet(x @ x.T), "linalg_slogdet", ("sign", "logabsdet")),
])
def test_results_have_names(call, name, fields):
    found = call(torch.tensor([[1.0, 2.0], [-3.0, 0.5]]))
    kind = getattr(torch.return_types, name)
    assert type(found) is kind and isinstance(found, tuple) and len(found) == len(fields)
    for i, field in enumerate(fields):
        assert getattr(found, field) is found[i]
    assert repr(found).startswith(f"torch.return_types.{name}(\n{fields[0]}=tensor(")


def test_they_can_be_made_of_a_sequence():
    kind = torch.return_types.max
    made = kind([torch.ones(1), torch.zeros(1)])
    assert made.values.item() == 1.0 and made.n_fields == 2
    with pytest.raises(TypeError, match="2-sequence"):
        kind([torch.ones(1)])


def test_they_are_trees_of_tensors():
    from flambeau.utils._pytree import tree_map
    found = tree_map(lambda t: t + 1, torch.tensor([3.0, 1.0]).max(0))
    assert type(found) is torch.return_types.max
    assert (found.values.item(), found.indices.item()) == (4.0, 1)
