"""The first of many, as the C++ library selects them."""
from hypothesis import given
from hypothesis import strategies as st

from flambeau.kernels.moving import selection

RANKS = st.lists(st.integers(-5, 5), min_size=1, max_size=200)


@given(RANKS, st.integers(1, 10), st.booleans())
def test_the_first_have_the_least_ranks(rank, k, ordered):
    k, places = min(k, len(rank)), list(range(len(rank)))
    selection.first_items(places, rank, k, ordered)
    assert sorted(places) == list(range(len(rank)))
    assert sorted(rank[place] for place in places[:k]) == sorted(rank)[:k]
    if ordered:
        assert [rank[place] for place in places[:k]] == sorted(rank)[:k]


@given(RANKS)
def test_sorting(rank):
    places = list(range(len(rank)))
    selection.sort(places, rank, len(rank))
    assert [rank[place] for place in places] == sorted(rank)


@given(RANKS, st.data())
def test_one_item_comes_to_its_place(rank, data):
    k, places = data.draw(st.integers(0, len(rank) - 1)), list(range(len(rank)))
    selection.quick_select(places, rank, k)
    assert rank[places[k]] == sorted(rank)[k] and sorted(places) == list(range(len(rank)))
    assert all(rank[place] <= rank[places[k]] for place in places[:k])
