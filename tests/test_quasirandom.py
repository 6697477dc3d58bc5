import numpy as np
import pytest

import flambeau as torch
from flambeau import quasirandom
from flambeau.quasirandom import SobolEngine, directions


@pytest.mark.parametrize("engine", [SobolEngine(2), SobolEngine(2, scramble=True, seed=3)])
def test_each_elementary_interval_has_one_point(engine):
    points = engine.draw_base2(6, dtype=torch.float64)          # a (0, 6, 2)-net
    for bits in range(7):
        cells = (points[:, 0] * 2 ** bits).floor() * 64 + (points[:, 1] * 2 ** (6 - bits)).floor()
        assert len(cells.unique()) == 64


def test_the_scrambling_of_a_seed_is_that_of_pytorch():
    engine = SobolEngine(3, scramble=True, seed=7)
    expected = torch.tensor([[0.19947313, 0.1709322, 0.74935693],
                             [0.69220829, 0.71149492, 0.48982981],
                             [0.8505491, 0.29627064, 0.78798062]])
    torch.testing.assert_close(engine.draw(3), expected, rtol=0, atol=1e-7)


def test_a_sequence_goes_on_where_it_was():
    whole = SobolEngine(5).draw(20)
    parts = SobolEngine(5)
    assert torch.equal(torch.cat([parts.draw(1), parts.draw(6), parts.draw(13)]), whole)
    assert torch.equal(parts.reset().fast_forward(9).draw(4), whole[9:13])
    assert parts.num_generated == 13
    assert parts.draw(0).shape == (0, 5)


def test_out_and_type():
    target = torch.empty(0)
    assert SobolEngine(2).draw(3, out=target) is target and target.shape == (3, 2)
    assert SobolEngine(2).draw(1, dtype=torch.float64).dtype == torch.float64


def test_refusals():
    with pytest.raises(ValueError, match="Supported range"):
        SobolEngine(0)
    engine = SobolEngine(2)
    engine.draw(3)
    with pytest.raises(ValueError, match="power of 2"):
        engine.draw_base2(2)


def test_repr():
    assert repr(SobolEngine(4, scramble=True, seed=1)) == \
        "SobolEngine(dimension=4, scramble=True, seed=1)"


def test_more_dimensions_than_flambeau_has_numbers_for(monkeypatch):
    own = len(quasirandom._own_numbers()[0])
    assert own == 2048
    if quasirandom.importlib.util.find_spec("scipy"):
        many = directions(own + 1, 30)
        np.testing.assert_array_equal(many[:own], directions(own, 30))
    quasirandom._all_numbers.cache_clear()
    monkeypatch.setattr(quasirandom.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotImplementedError, match="more than 2048 dimensions"):
        SobolEngine(own + 1)
    assert SobolEngine(own).draw(1).shape == (1, own)
    quasirandom._all_numbers.cache_clear()


def test_direction_numbers_of_all_dimensions():
    pytest.importorskip("scipy")
    found = directions(SobolEngine.MAXDIM, 30)
    # every matrix of directions is triangular: the first 2^k points differ in their first k bits
    assert (found & (1 << 29 - np.arange(30))).all()
    assert not (found & ((1 << 29 - np.arange(30)) - 1)).any()
    assert len(np.unique(found, axis=0)) == SobolEngine.MAXDIM
    # of the dimensions 2, 3, 4, 20001 and 21201, what PyTorch gives
    point = SobolEngine(21201).fast_forward(123457).draw(1)[0]
    assert point[[1, 2, 3, 20000, 21200]].tolist() == [
        0.6827468872070312, 0.8072586059570312, 0.9503097534179688, 0.9099044799804688,
        0.47652435302734375]
