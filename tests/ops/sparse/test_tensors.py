"""Sparse tensors: against PyTorch's recorded results, dense algebra, and finite differences."""

import copy
import io
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau
from flambeau import func
from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.nn import functional as F
from flambeau.sparse import as_sparse_gradcheck, check_sparse_tensor_invariants

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from sparse_cases import EXPRESSIONS, outcome

RECORD = json.loads((HERE.parents[1] / "data" / "sparse.json").read_text())
LAYOUTS = [flambeau.sparse_coo, flambeau.sparse_csr, flambeau.sparse_csc, flambeau.sparse_bsr,
           flambeau.sparse_bsc]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_recorded(expression):
    assert outcome(flambeau, expression) == RECORD[expression]


# ---- derivatives --------------------------------------------------------------------------------

PLACES = flambeau.tensor([[0, 1, 1, 2], [2, 0, 2, 1]])
TWICE = flambeau.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])


def dense(*shape):
    return (flambeau.rand(shape, dtype=flambeau.float64) + 0.5).requires_grad_()


def coo():
    return flambeau.sparse_coo_tensor(PLACES, dense(4).detach(), (3, 3),
                                      is_coalesced=True).requires_grad_()


def hybrid():
    return flambeau.sparse_coo_tensor(PLACES, dense(4, 2).detach(), (3, 3, 2),
                                      is_coalesced=True).requires_grad_()


def csr():
    return coo().detach().to_sparse_csr().requires_grad_()


def bsr():
    return dense(4, 4).detach().to_sparse_bsr((2, 2)).requires_grad_()


def square():
    eye = flambeau.eye(3, dtype=flambeau.float64) * 3
    return (eye + dense(3, 3).detach()).to_sparse_csr().requires_grad_()


sp = flambeau.sparse
GRADIENTS = {
    "to_dense": (lambda a: a.to_dense(), coo),
    "to_dense hybrid": (lambda a: a.to_dense(), hybrid),
    "to_dense bsr": (lambda a: a.to_dense(), bsr),
    "values": (lambda a: a.values(), coo),
    "to_csr": (lambda a: a.to_sparse_csr(), coo),
    "to_bsr": (lambda a: a.to_sparse_bsr((3, 3)), coo),
    "dense to coo": (lambda a: a.to_sparse(), lambda: dense(3, 3)),
    "dense to csc": (lambda a: a.to_sparse_csc(), lambda: dense(3, 3)),
    "mm": (flambeau.mm, coo, lambda: dense(3, 2)),
    "mm of dense": (flambeau.mm, lambda: dense(2, 3), coo),
    "mm of two": (flambeau.mm, coo, coo),
    "mm of blocks": (flambeau.mm, bsr, lambda: dense(4, 2)),
    "mv": (flambeau.mv, coo, lambda: dense(3)),
    "addmm": (flambeau.addmm, lambda: dense(3, 2), coo, lambda: dense(3, 2)),
    "sparse.mm": (sp.mm, coo, lambda: dense(3, 2)),
    "sparse.mm of dense": (sp.mm, lambda: dense(2, 3), coo),
    "sparse.mm of two": (sp.mm, coo, coo),
    "sparse.mm csr": (sp.mm, csr, lambda: dense(3, 2)),
    "sparse.addmm": (lambda *a: sp.addmm(*a, beta=2.0, alpha=3.0), lambda: dense(3, 2), coo,
                     lambda: dense(3, 2)),
    "sampled_addmm": (lambda *a: sp.sampled_addmm(*a, beta=2.0, alpha=3.0), csr,
                      lambda: dense(3, 2), lambda: dense(2, 3)),
    "spsolve": (sp.spsolve, square, lambda: dense(3)),
    "spdiags": (lambda a: sp.spdiags(a, flambeau.tensor([0, 1]), (3, 3)), lambda: dense(2, 3)),
    "sum": (flambeau.sum, coo),
    "sparse.sum": (lambda a: sp.sum(a, 0), coo),
    "sparse.sum both": (lambda a: sp.sum(a, [0, 2]), hybrid),
    "sparse.sum to dense": (lambda a: sp.sum(a, [0, 1]), hybrid),
    "softmax": (lambda a: sp.softmax(a, 1), coo),
    "log_softmax": (lambda a: sp.log_softmax(a, 0), coo),
    "softmax hybrid": (lambda a: sp.softmax(a, 2), hybrid),
    "mul": (flambeau.mul, coo, coo),
    "mul by a number": (lambda a: a * 3, csr),
    "mul by a scalar": (flambeau.mul, coo, lambda: dense()),
    "div": (flambeau.div, coo, lambda: dense()),
    "add": (flambeau.add, coo, coo),
    "add to dense": (flambeau.add, lambda: dense(3, 3), coo),
    "sub": (flambeau.sub, coo, coo),
    "sub csr": (flambeau.sub, csr, csr),
    "sin": (flambeau.sin, coo),
    "sqrt csr": (flambeau.sqrt, csr),
    "tanh": (flambeau.tanh, coo),
    "neg": (flambeau.neg, coo),
    "pow": (lambda a: a**3, coo),
    "norm": (flambeau.norm, coo),
    "t": (flambeau.t, coo),
    "t csr": (flambeau.t, csr),
    "permute": (lambda a: a.permute(1, 0, 2), hybrid),
    "select": (lambda a: a[1], coo),
    "select dense": (lambda a: a[:, :, 1], hybrid),
    "element": (lambda a: a[1, 2], coo),
    "slice": (lambda a: a[:, 1:], coo),
    "index_select": (lambda a: a.index_select(0, flambeau.tensor([1, 1, 0])), coo),
    "cat": (lambda a: flambeau.cat([a, a * 2]), coo),
    "stack": (lambda a, b: flambeau.stack([a, b]), coo, coo),
    "sparse_mask": (lambda a: a.sparse_mask(coo().detach()), lambda: dense(3, 3)),
    "sparse_mask of sparse": (lambda a: a.sparse_mask(coo().detach()), coo),
    "sparse_coo_tensor": (lambda v: flambeau.sparse_coo_tensor(PLACES, v, (3, 3)),
                          lambda: dense(4)),
    "uncoalesced": (lambda v: flambeau.sparse_coo_tensor(TWICE, v, (3, 3)), lambda: dense(4)),
    "sparse_csr_tensor": (lambda v: flambeau.sparse_csr_tensor([0, 1, 3, 4], [2, 0, 2, 1], v,
                                                               (3, 3)), lambda: dense(4)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_derivatives(name):
    """First and second order, and forward mode, by finite differences."""
    if name == "spsolve":
        pytest.importorskip("scipy.sparse", reason="needs the extra flambeau[scipy]")
    function, *inputs = GRADIENTS[name]
    flambeau.manual_seed(1)
    given_inputs = tuple(make() for make in inputs)
    as_sparse_gradcheck(gradcheck)(function, given_inputs, masked=True, check_forward_ad=True,
                                   check_batched_grad=False)
    as_sparse_gradcheck(gradgradcheck)(function, given_inputs, masked=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck_takes_sparse_inputs(layout, masked):
    blocks = (2, 2) if layout in LAYOUTS[3:] else None
    x = dense(4, 4).detach().to_sparse(layout=layout, blocksize=blocks).requires_grad_()
    assert gradcheck(lambda a: a.to_dense(masked_grad=masked).sin(), x, masked=masked,
                     check_batched_grad=False)


# ---- forms --------------------------------------------------------------------------------------

matrices = st.builds(
    lambda seed, rows, cols, fill: np.where(
        np.random.default_rng(seed).random((rows, cols)) < fill,
        np.random.default_rng(seed + 1).standard_normal((rows, cols)), 0.0),
    st.integers(0, 10**6), st.sampled_from([2, 4, 6]), st.sampled_from([2, 4, 6]),
    st.sampled_from([0.0, 0.2, 0.7, 1.0]))


@given(matrices, st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS))
@settings(max_examples=60, deadline=None)
def test_forms_hold_the_same_matrix(array, first, second):
    x = flambeau.tensor(array)
    for layout in (first, second):
        blocks = (2, 1) if layout in LAYOUTS[3:] else None
        if x.layout in LAYOUTS[3:] and layout in LAYOUTS[1:3]:
            x = x.to_sparse()               # PyTorch has no way from blocks to rows but this
        with check_sparse_tensor_invariants():
            x = x.to_sparse(layout=layout, blocksize=blocks)
        assert x.layout is layout
        assert (x.to_dense().numpy() == array).all()


@given(matrices, matrices)
@settings(max_examples=40, deadline=None)
def test_products_and_sums_are_those_of_dense_matrices(a, b):
    x, y = flambeau.tensor(a).to_sparse(), flambeau.tensor(b).to_sparse()
    if a.shape[1] == b.shape[0]:
        for left, right in ((x, y), (x, y.to_dense()), (x.to_dense(), y), (x.to_sparse_csr(), y)):
            product = flambeau.sparse.mm(left, right).to_dense().numpy()
            np.testing.assert_allclose(product, a @ b, atol=1e-12)
    if a.shape == b.shape:
        assert ((x + y).to_dense().numpy() == a + b).all()
        assert ((x * y).to_dense().numpy() == a * b).all()
        assert ((x.to_dense() - y).numpy() == a - b).all()


def test_coalescing_adds_up():
    rng = np.random.default_rng(0)
    indices = rng.integers(0, 3, (2, 40))
    values = rng.standard_normal((40, 2))
    s = flambeau.sparse_coo_tensor(indices, values, (3, 3, 2))
    expected = np.zeros((3, 3, 2))
    np.add.at(expected, tuple(indices), values)
    np.testing.assert_allclose(s.coalesce().to_dense().numpy(), expected, atol=1e-12)
    assert s.coalesce().is_coalesced()
    assert not s.is_coalesced()


def test_reduced_product():
    a = flambeau.tensor([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]).to_sparse_csr()
    b = flambeau.arange(6.0).reshape(3, 2)
    assert flambeau.sparse.mm(a, b, "mean").tolist() == [[2.0, 3.5], [12.0, 15.0]]
    assert flambeau.sparse.mm(a, b, "amax").tolist() == [[4.0, 6.0], [12.0, 15.0]]


# ---- gradients that arrive ----------------------------------------------------------------------

def test_sparse_gradients_add_up_and_stay_sparse():
    w = flambeau.ones(4, 2, requires_grad=True)
    look = flambeau.tensor([1, 1])
    F.embedding(look, w, sparse=True).sum().backward()
    first = w.grad
    F.embedding(look, w, sparse=True).sum().backward()
    assert w.grad is first
    assert w.grad.is_sparse
    assert w.grad.to_dense().tolist() == [[0, 0], [4, 4], [0, 0], [0, 0]]
    w.sum().backward()
    assert not w.grad.is_sparse
    assert w.grad.tolist() == [[1, 1], [5, 5], [1, 1], [1, 1]]
    kept = w.grad
    F.embedding(look, w, sparse=True).sum().backward()
    assert w.grad is kept
    assert w.grad[1].tolist() == [7, 7]


@pytest.mark.parametrize("name, options", [
    ("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9}), ("Adagrad", {"lr": 0.1})])
def test_optimisers_take_sparse_gradients(name, options):
    weights = []
    for sparse in (True, False):
        flambeau.manual_seed(0)
        layer = flambeau.nn.EmbeddingBag(6, 3, sparse=sparse, mode="sum")
        optimiser = getattr(flambeau.optim, name)(layer.parameters(), **options)
        for _ in range(3):
            optimiser.zero_grad()
            layer(flambeau.tensor([[0, 1], [3, 1]])).pow(2).sum().backward()
            optimiser.step()
        weights.append(layer.weight.detach())
    assert flambeau.allclose(*weights)


def test_sparse_adam_moves_only_what_was_looked_up():
    layer = flambeau.nn.Embedding(5, 2, sparse=True)
    before = layer.weight.detach().clone()
    optimiser = flambeau.optim.SparseAdam(layer.parameters(), lr=0.1)
    layer(flambeau.tensor([1, 3])).sum().backward()
    optimiser.step()
    moved = (layer.weight.detach() != before).any(1)
    assert moved.tolist() == [False, True, False, True, False]


# ---- the rest -----------------------------------------------------------------------------------

def test_in_place_changes_are_noticed():
    s = coo().detach()
    w = dense(3, 2)
    y = flambeau.mm(s, w)
    s.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        coo().mul_(2)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_and_files(layout):
    blocks = (2, 2) if layout in LAYOUTS[3:] else None
    x = dense(4, 4).detach().to_sparse(layout=layout, blocksize=blocks).requires_grad_()
    buffer = io.BytesIO()
    flambeau.save({"x": x}, buffer)
    buffer.seek(0)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone(),
                  flambeau.load(buffer)["x"]):
        assert other.layout is layout
        assert flambeau.equal(other.to_dense(), x.to_dense())
    assert copy.deepcopy(x).requires_grad


def test_what_has_no_rule_is_refused():
    s = coo()
    for call in (lambda: s.exp(), lambda: flambeau.linalg.inv(s), lambda: s > 0,
                 lambda: flambeau.where(s.detach(), 1, 2), lambda: s.detach().cumsum(0)):
        with pytest.raises(NotImplementedError, match="with arguments from the 'Sparse"):
            call()
    with pytest.raises(TypeError):
        s[0] = 1
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        flambeau.ones(3, 3).data = s


def test_invariants_switch():
    assert not check_sparse_tensor_invariants.is_enabled()
    with check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="found index 5"):
        flambeau.sparse_coo_tensor([[5]], [1.0], (3,))
    assert flambeau.sparse_coo_tensor([[5]], [1.0], (3,))._nnz() == 1


def test_subclasses_are_asked_first():
    class Mine(flambeau.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "mine"
    mine = flambeau.ones(3, 3).as_subclass(Mine)
    assert flambeau.mul(coo(), mine) == "mine"
    assert not flambeau.overrides.has_torch_function((coo(),))


ROWS = flambeau.tensor([[0.0, 2.0, 3.0], [4.0, 0.0, 0.0]])


def test_to_sparse_is_batched():
    whole = func.vmap(lambda row: row.to_sparse())(ROWS)
    assert whole.is_sparse and whole.to_dense().equal(ROWS)
    assert func.vmap(lambda row: row.to_sparse().to_dense() * 2, 1, 1)(ROWS).equal(2 * ROWS)
    slopes = func.vmap(func.grad(lambda row: (row.to_sparse().to_dense() ** 2).sum()))(ROWS)
    assert slopes.equal(2 * ROWS)
    nested = func.vmap(func.vmap(lambda row: row.to_sparse().to_dense()))(ROWS[None])
    assert nested.equal(ROWS[None])


@pytest.mark.parametrize("options", [{}, {"dim": (0, 1)}, {"dim": (0, 1), "keepdim": True}])
def test_the_gradient_of_a_dense_sum_is_dense(options):
    x = ROWS.to_sparse().requires_grad_()
    x.sum(**options).backward(flambeau.ones(1, 1) if "keepdim" in options else None)
    assert x.grad.layout is flambeau.strided and x.grad.equal(flambeau.ones(2, 3))


def test_sums_that_keep_dimensions_keep_the_layout():
    total = ROWS.to_sparse_csr().sum((0, 1), keepdim=True)
    assert total.layout is flambeau.sparse_csr and total.to_dense().tolist() == [[9.0]]


def test_compressed_columns_come_as_they_are():
    found = ROWS.to_sparse_csc().to_sparse()
    assert not found.is_coalesced() and found._indices().tolist() == [[1, 0, 0], [0, 1, 2]]
    assert found.coalesce().indices().tolist() == [[0, 0, 1], [1, 2, 0]]


def test_tensors_like_a_sparse_one():
    csr = ROWS.to_sparse_csr()
    assert flambeau.ones_like(csr).values().tolist() == [1, 1, 1]
    assert flambeau.full_like(csr, 2.0).to_dense().equal(2.0 * (ROWS != 0))
    assert flambeau.zeros_like(csr, layout=flambeau.sparse_csc).layout is flambeau.sparse_csc
    with pytest.raises(NotImplementedError, match="ones_like"):
        flambeau.ones_like(ROWS.to_sparse())


def test_functions_of_values():
    assert flambeau.nn.functional.relu(-ROWS.to_sparse()).to_dense().equal(0 * ROWS)
    assert (ROWS.to_sparse() // 2).to_dense().equal(ROWS // 2)
