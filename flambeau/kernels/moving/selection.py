"""Selecting by rank with the algorithms of C++ libraries, step by step.

Which of several equal elements comes first is visible in the positions that `topk`, `kthvalue` and
`mode` give; torch's come from libstdc++'s `partial_sort`, `nth_element` and `sort`, and a
quickselect. Ranks that are NaN are no order, and then the steps themselves are what is specified.
Each function takes `items`, a list that it reorders, and `rank`, what they are compared by.
"""


def first_items(items, rank, k, ordered):
    """Bring the `k` items of least rank to the front; in order, if so wanted."""
    n = len(items)
    if k * 64 <= n:
        _partial_sort(items, rank, 0, k, n)
    else:
        _nth_element(items, rank, k - 1)
        if ordered:
            sort(items, rank, k - 1)


def sort(items, rank, n):
    """Bring the first `n` items in order; those of equal rank in no particular one."""
    _sort(items, rank, 0, n, _depth(n))
    _insertion_sort(items, rank, 0, n)


def quick_select(items, rank, k):
    """Bring the item of rank k to its place: quickselect (Numerical Recipes, 8.5)."""
    def order(i, j):
        if rank[items[i]] > rank[items[j]]:
            _swap(items, i, j)

    low, high = 0, len(items) - 1
    while high > low + 1:
        _swap(items, low + (high - low) // 2, low + 1)
        order(low + 1, high)
        order(low, high)
        order(low + 1, low)
        pivot, i, j = rank[items[low]], low + 1, high
        while True:
            i += 1
            while rank[items[i]] < pivot:
                i += 1
            j -= 1
            while rank[items[j]] > pivot:
                j -= 1
            if j < i:
                break
            _swap(items, i, j)
        _swap(items, low, j)
        if j <= k:
            low = i
        if j >= k:
            high = j - 1
    if high == low + 1:
        order(low, high)


def _swap(items, i, j):
    items[i], items[j] = items[j], items[i]


def _depth(n):
    return 2 * (n.bit_length() - 1) if n > 0 else 0


def _partition(items, rank, first, last):
    """Median of three to the front, then what is less before what is not; where that begins."""
    def less(i, j):
        return rank[items[i]] < rank[items[j]]

    a, b, c = first + 1, first + (last - first) // 2, last - 1
    if less(a, b):
        middle = b if less(b, c) else c if less(a, c) else a
    else:
        middle = a if less(a, c) else c if less(b, c) else b
    _swap(items, first, middle)
    pivot, i, j = rank[items[first]], first + 1, last
    while True:
        while i < len(items) and rank[items[i]] < pivot:
            i += 1
        j -= 1
        while j >= 0 and pivot < rank[items[j]]:
            j -= 1
        if i >= j:
            return i
        _swap(items, i, j)
        i += 1


def _nth_element(items, rank, nth):
    first, last, depth = 0, len(items), _depth(len(items))
    while last - first > 3:
        if not depth:
            _heap_select(items, rank, first, nth + 1, last)
            _swap(items, first, nth)
            return
        depth -= 1
        cut = _partition(items, rank, first, last)
        if cut <= nth:
            first = cut
        else:
            last = cut
    _insertion_sort(items, rank, first, last)


def _sort(items, rank, first, last, depth):
    """Quicksort down to stretches of 16, which an insertion sort finishes."""
    while last - first > 16:
        if not depth:
            _partial_sort(items, rank, first, last, last)
            return
        depth -= 1
        cut = _partition(items, rank, first, last)
        _sort(items, rank, cut, last, depth)
        last = cut


def _insertion_sort(items, rank, first, last):
    """Only the first 16 are compared with the least one, which stops the others."""
    for i in range(first + 1, last):
        value = items[i]
        own, hole = rank[value], i
        if i - first < 16 and own < rank[items[first]]:
            items[first + 1:i + 1] = items[first:i]
            hole = first
        else:
            while hole > first and own < rank[items[hole - 1]]:
                items[hole] = items[hole - 1]
                hole -= 1
        items[hole] = value


def _partial_sort(items, rank, first, middle, last):
    _heap_select(items, rank, first, middle, last)
    for end in range(middle - 1, first, -1):
        value, items[end] = items[end], items[first]
        _sift(items, rank, first, 0, end - first, value)


def _heap_select(items, rank, first, middle, last):
    """A heap of the least, its greatest in front, at first:middle."""
    n = middle - first
    for parent in range((n - 2) // 2, -1, -1):
        _sift(items, rank, first, parent, n, items[first + parent])
    for i in range(middle, last):
        if rank[items[i]] < rank[items[first]]:
            value, items[i] = items[i], items[first]
            _sift(items, rank, first, 0, n, value)


def _sift(items, rank, first, hole, n, value):
    """Down from `hole` along the greater children to a leaf, then up to where `value` belongs."""
    top = child = hole
    while child < (n - 1) // 2:
        child = 2 * (child + 1)
        if rank[items[first + child]] < rank[items[first + child - 1]]:
            child -= 1
        items[first + hole] = items[first + child]
        hole = child
    if n % 2 == 0 and child == (n - 2) // 2:
        child = 2 * child + 1
        items[first + hole] = items[first + child]
        hole = child
    parent = (hole - 1) // 2
    while hole > top and rank[items[first + parent]] < rank[value]:
        items[first + hole] = items[first + parent]
        hole, parent = parent, (parent - 1) // 2
    items[first + hole] = value
