"""Named tuples of several results."""

import copy
import io
import pickle

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


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_they_can_be_pickled(protocol):
    found = torch.sort(torch.tensor([3.0, 1.0, 2.0]))
    again = pickle.loads(pickle.dumps(found, protocol))
    assert type(again) is torch.return_types.sort
    assert again.values.tolist() == [1.0, 2.0, 3.0] and again.indices.tolist() == [1, 2, 0]
    assert pickle.loads(pickle.dumps(type(found), protocol)) is type(found)


def test_they_can_be_copied():
    found = torch.sort(torch.tensor([3.0, 1.0]))
    shallow, deep = copy.copy(found), copy.deepcopy(found)
    assert type(shallow) is type(deep) is torch.return_types.sort
    assert shallow.values is found.values and deep.values is not found.values
    assert deep.values.tolist() == [1.0, 3.0]


def test_files_name_them_as_pytorch_does():
    file = io.BytesIO()
    torch.save(torch.sort(torch.tensor([3.0, 1.0])), file)
    assert b"torch.return_types" in file.getvalue()
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert type(again) is torch.return_types.sort and again.indices.tolist() == [1, 0]


def test_they_are_made_again_of_what_pytorch_pickles():
    values, indices = torch.ones(1), torch.zeros(1)
    found = torch.return_types.sort((values, indices))
    kind, arguments = found.__reduce__()[:2]
    assert kind is torch.return_types.sort and arguments[1] == {}
    again = kind((values, indices), {})
    assert again.values is values and again.indices is indices


def test_all_classes_are_listed():
    kinds = torch.return_types.all_return_types
    assert len(kinds) == len(set(kinds)) == 67 and torch.return_types.linalg_eigh_out in kinds
    assert {kind.__name__ for kind in kinds} == set(torch.return_types.__all__) - {
        "all_return_types", "pytree_register_structseq"}


def test_pytrees_know_them_already():
    with pytest.raises(ValueError, match="already registered as pytree node"):
        torch.return_types.pytree_register_structseq(torch.return_types.max)
