import pytest

import flambeau
from flambeau.testing import assert_close


def _compressed(layout, outer, inner, values):
    return flambeau.sparse_compressed_tensor(
        flambeau.tensor(outer), flambeau.tensor(inner), flambeau.tensor(values), (2, 2),
        layout=getattr(flambeau, f"sparse_{layout}"))


@pytest.mark.parametrize("layout, outer, inner, data", [
    ("csr", "crow", "col", [1.0, 2.0]), ("csc", "ccol", "row", [1.0, 2.0]),
    ("bsr", "crow", "col", [[[1.0]], [[2.0]]]), ("bsc", "ccol", "row", [[[1.0]], [[2.0]]])])
def test_parts_of_compressed_tensors_are_named(layout, outer, inner, data):
    x = _compressed(layout, [0, 1, 2], [0, 1], data)
    for other, what in (((outer + "_indices"), ([0, 0, 2], [0, 1], data)),
                        ((inner + "_indices"), ([0, 1, 2], [0, 0], data)),
                        ("values", ([0, 1, 2], [0, 1], [data[0], data[0]]))):
        with pytest.raises(AssertionError, match=f"^Sparse {layout.upper()} {other} are not"):
            assert_close(x, _compressed(layout, *what))
    with pytest.raises(AssertionError, match=f"specified values in sparse {layout.upper()} tensor"):
        assert_close(x, _compressed(layout, [0, 1, 1], [0], data[:1]))


def test_types_of_indices_do_not_matter():
    x = _compressed("csr", [0, 1, 2], [0, 1], [1.0, 2.0])
    parts = [x.crow_indices().int(), x.col_indices().int(), x.values()]
    assert_close(flambeau.sparse_csr_tensor(*parts, (2, 2)), x)


def test_coordinates_are_compared_as_they_are():
    def made(places, values):
        return flambeau.sparse_coo_tensor(flambeau.tensor(places), flambeau.tensor(values), (2, 2))
    x = made([[0, 1], [0, 1]], [1.0, 2.0])
    for other, said in ((made([[0, 1], [1, 1]], [1.0, 2.0]), "Sparse COO indices are not equal!"),
                        (made([[0, 1], [0, 1]], [1.0, 3.0]), "Sparse COO values are not close!"),
                        (made([[0, 1, 1], [0, 1, 1]], [1.0, 1.0, 1.0]),
                         "The number of specified values in sparse COO tensors does not match: "
                         "2 != 3"),
                        (made([[0, 1]], [[1.0, 0.0], [0.0, 2.0]]),
                         "The number of sparse dimensions in sparse COO tensors does not match: "
                         "2 != 1")):
        with pytest.raises(AssertionError) as error:
            assert_close(x, other)
        assert str(error.value).startswith(said)


def test_quantized_tensors_are_compared_by_what_they_stand_for():
    x = flambeau.tensor([1.0, 2.0])
    q = flambeau.quantize_per_tensor(x, 1.0, 2, flambeau.qint32)
    by_row = flambeau.quantize_per_channel(x, flambeau.ones(2), flambeau.zeros(2).long(), 0,
                                           flambeau.qint32)
    assert_close(q, q)
    for other, said in ((x, "'is_quantized' do not match: True != False"),
                        (by_row, r"'qscheme\(\)' do not match"),
                        (flambeau.quantize_per_tensor(x + 1, 1.0, 2, flambeau.qint32),
                         "Quantized tensor-likes are not close!")):
        with pytest.raises(AssertionError, match=said):
            assert_close(q, other)
