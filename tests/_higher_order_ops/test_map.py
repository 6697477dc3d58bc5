"""Functions of each slice."""
import flambeau as torch
from flambeau._higher_order_ops import map


def test_a_map_is_stacked():
    x = torch.arange(4.0).view(2, 2)
    found = map(lambda r, y: {"sum": r["k"].sum(), "product": r["k"] * y}, {"k": x},
                torch.tensor(2.0))
    assert found["sum"].tolist() == [1.0, 5.0]
    assert found["product"].tolist() == [[0.0, 2.0], [4.0, 6.0]]
