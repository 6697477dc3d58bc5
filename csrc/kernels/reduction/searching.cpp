// Searching in sorted sequences, places of what is not zero, equality, and distinct elements:
// flambeau/kernels/reduction/searching.py.
#include "kernels/network/module.h"

namespace network {

namespace {

// Calls body(T()) for a type of numbers that can be compared; false: it is another.
template <class Body>
bool for_type(int type, Body body) {
    switch (dtype_of(type)) {
        case F4: body(float()); return true;
        case F8: body(double()); return true;
        case I8: body(int64_t()); return true;
        case I4: body(int32_t()); return true;
        case I2: body(int16_t()); return true;
        case I1: body(int8_t()); return true;
        case U1: body(uint8_t()); return true;
        case B1: body(bool()); return true;
        default: return false;
    }
}

bool read_flag(PyObject *x, bool &to) {
    to = x == Py_True;
    return PyBool_Check(x);
}

// ---- in what is sorted --------------------------------------------------------------------------

// By comparisons as IEEE 754 has them, of which none with NaN holds.
template <class T>
npy_intp bisect(const T *sequence, const int64_t *order, npy_intp n, T value, bool right) {
    npy_intp low = 0, high = n;
    while (low < high) {
        npy_intp middle = low + (high - low) / 2;
        T x = sequence[order ? order[middle] : middle];
        if (right ? x > value : x >= value) high = middle;
        else low = middle + 1;
    }
    return low;
}

// The same for sixteen values at once, which have no branches to guess and do not wait for each other.
constexpr int TOGETHER = 16;
template <bool right, class T>
CLONES void bisect_all(const T *sequence, int32_t n, const T *values, int32_t *to) {
    int32_t low[TOGETHER], high[TOGETHER];
    for (int j = 0; j < TOGETHER; j++) low[j] = 0, high[j] = n;
    for (int32_t left = n; left > 0; left /= 2)
        for (int j = 0; j < TOGETHER; j++) {
            int32_t middle = low[j] + ((high[j] - low[j]) >> 1), place = middle < n ? middle : n - 1;
            T x = sequence[place], value = values[j];
            bool before = right ? x > value : x >= value, open = low[j] < high[j];
            low[j] = open & !before ? middle + 1 : low[j];
            high[j] = open & before ? middle : high[j];
        }
    for (int j = 0; j < TOGETHER; j++) to[j] = low[j];
}

PyObject *search(PyObject *sequence_, PyObject *values_, PyObject *sorter_, bool right, bool narrow) {
    Array sequence, values, sorter;
    if (!is_plain_array(sequence_) || !is_plain_array(values_)) return declined();
    int type = type_of(sequence_);
    if (type != type_of(values_) || type == NPY_BOOL || !take_any(sequence_, sequence) ||
        !take_any(values_, values) || !take_or_none<int64_t>(sorter_, sorter))
        return declined();
    int ndim = sequence.ndim();
    if (!ndim || (sorter && !same_shape(sorter, sequence))) return declined();
    npy_intp n = sequence.dim(ndim - 1), size = values.size(), each = size;
    if (ndim > 1) {
        if (values.ndim() != ndim) return declined();
        for (int d = 0; d < ndim - 1; d++)
            if (values.dim(d) != sequence.dim(d)) return declined();
        each = values.dim(ndim - 1);
    }
    Array found = Array::empty(values.dims(), narrow ? NPY_INT32 : NPY_INT64);
    if (!found) return nullptr;
    bool done = for_type(type, [&](auto zero) {
        using T = decltype(zero);
        const T *s = sequence.data<T>(), *v = values.data<T>();
        const int64_t *order = sorter.data<int64_t>();
        Unlocked unlocked(size >= PARALLEL_FROM);
        parallel_for(size, PARALLEL_FROM / 16, [&](int64_t begin, int64_t end) {
            int32_t places[TOGETHER];
            for (npy_intp i = begin; i < end;) {
                npy_intp row = ndim > 1 ? i / each * n : 0;
                bool several = !order && n && n < (1 << 30) && i + TOGETHER <= end &&
                               (ndim == 1 || i / each == (i + TOGETHER - 1) / each);
                if (several) {
                    if (right) bisect_all<true>(s + row, int32_t(n), v + i, places);
                    else bisect_all<false>(s + row, int32_t(n), v + i, places);
                    for (int j = 0; j < TOGETHER; j++, i++) {
                        if (narrow) found.data<int32_t>()[i] = places[j];
                        else found.data<int64_t>()[i] = places[j];
                    }
                    continue;
                }
                npy_intp place = bisect(s + row, order ? order + row : nullptr, n, v[i], right);
                if (narrow) found.data<int32_t>()[i] = int32_t(place);
                else found.data<int64_t>()[i] = place;
                i++;
            }
        });
    });
    return done ? found.release() : declined();
}

// (sorted_sequence, values, sorter, out_int32, right, side)
PyObject *searchsorted(PyObject *const *a) {
    bool narrow, right;
    if (!read_flag(a[3], narrow) || !read_flag(a[4], right)) return declined();
    if (a[5] != Py_None) {
        if (!PyUnicode_Check(a[5])) return declined();
        bool left = PyUnicode_CompareWithASCIIString(a[5], "left") == 0;
        if ((left && right) || (!left && PyUnicode_CompareWithASCIIString(a[5], "right"))) return declined();
        right = !left;
    }
    return search(a[0], a[1], a[2], right, narrow);
}

// (values, boundaries, out_int32, right)
PyObject *bucketize(PyObject *const *a) {
    bool narrow, right;
    if (!read_flag(a[2], narrow) || !read_flag(a[3], right)) return declined();
    if (!is_plain_array(a[1]) || PyArray_NDIM((PyArrayObject *)a[1]) != 1) return declined();
    return search(a[1], a[0], Py_None, right, narrow);
}

// ---- what is not zero ---------------------------------------------------------------------------

// The coordinates of the first `rows` elements that are not zero.
template <class T>
npy_intp list_places(const T *x, const Array &a, int64_t *to, npy_intp rows) {
    int ndim = a.ndim();
    npy_intp at[NPY_MAXDIMS] = {}, done = 0, n = a.size();
    for (npy_intp i = 0; i < n && done < rows; i++) {
        if (x[i] != 0) {
            std::copy(at, at + ndim, to + done * ndim);
            done++;
        }
        for (int d = ndim - 1; d >= 0 && ++at[d] == a.dim(d); d--) at[d] = 0;
    }
    return done;
}

// (x, size, fill_value)
PyObject *nonzero_static(PyObject *const *a) {
    Array x, found;
    npy_intp rows, fill;
    if (!take_any(a[0], x) || !take_int(a[1], rows) || rows < 0 ||
        !take_int(a[2], fill))
        return declined();
    bool done = for_type(PyArray_TYPE(x.array()), [&](auto zero) {
        using T = decltype(zero);
        found = Array::empty({rows, npy_intp(x.ndim())}, NPY_INT64);
        if (!found) return;
        int64_t *to = found.data<int64_t>();
        npy_intp listed = list_places(x.data<T>(), x, to, rows);
        std::fill(to + listed * x.ndim(), to + rows * x.ndim(), fill);
    });
    return done && found ? found.release() : declined();
}

// ---- equality -----------------------------------------------------------------------------------

PyObject *same(PyObject *const *a) {
    Array x, y;
    if (!is_plain_array(a[0]) || !is_plain_array(a[1])) return declined();
    PyArrayObject *one = (PyArrayObject *)a[0], *other = (PyArrayObject *)a[1];
    int type = PyArray_TYPE(one), ndim = PyArray_NDIM(one);
    if (type != PyArray_TYPE(other)) return declined();
    if (ndim != PyArray_NDIM(other) || !std::equal(PyArray_SHAPE(one), PyArray_SHAPE(one) + ndim,
                                                   PyArray_SHAPE(other)))
        Py_RETURN_FALSE;
    if (!take_any(a[0], x) || !take_any(a[1], y)) return declined();
    bool equal = true;
    bool done = for_type(type, [&](auto zero) {
        using T = decltype(zero);
        const T *p = x.data<T>(), *q = y.data<T>();
        equal = std::equal(p, p + x.size(), q);
    });
    return done ? PyBool_FromLong(equal) : declined();
}

// ---- distinct elements --------------------------------------------------------------------------

// Runs of equal elements of x[order[i]]; `inverse` and `counts` may be null. How many there are.
template <class T>
npy_intp runs(const T *x, const npy_intp *order, npy_intp n, T *values, int64_t *inverse, int64_t *counts) {
    npy_intp found = 0, began = 0;
    for (npy_intp i = 0; i < n; i++) {
        npy_intp at = order ? order[i] : i;
        if (!i || x[at] != values[found - 1]) {
            if (i && counts) counts[found - 1] = i - began;
            values[found++] = x[at], began = i;
        }
        if (inverse) inverse[at] = found - 1;
    }
    if (n && counts) counts[found - 1] = n - began;
    return found;
}

// NaN last, as sorting has it.
template <class T>
void sort_places(const T *x, npy_intp *order, npy_intp n) {
    for (npy_intp i = 0; i < n; i++) order[i] = i;
    std::stable_sort(order, order + n, [x](npy_intp i, npy_intp j) {
        return x[i] < x[j] || (x[j] != x[j] && x[i] == x[i]);
    });
}

PyObject *shortened(Array &array, npy_intp n) {
    if (!array) return PyArray_SimpleNew(1, &(n = 0), NPY_INT64);
    if (array.size() != n) {
        Array whole = std::move(array);
        array = Array::empty(1, &n, PyArray_TYPE(whole.array()));
        if (array) std::memcpy(array.data<char>(), whole.data<char>(), n * PyArray_ITEMSIZE(whole.array()));
    }
    return array.release();
}

// (x, inverse, counts): the distinct elements, in order, or without those that equal the one before
template <bool SORTED>
PyObject *distinct_of(PyObject *const *a) {
    Array x, values, inverse, counts;
    bool wants_inverse, wants_counts;
    if (!take_any(a[0], x) || !read_flag(a[1], wants_inverse) ||
        !read_flag(a[2], wants_counts) || x.size() > 4096)
        return declined();
    npy_intp size = x.size(), found = 0;
    values = Array::empty(1, &size, PyArray_TYPE(x.array()));
    if (wants_inverse) inverse = Array::empty(x.dims(), NPY_INT64);
    if (wants_counts) counts = Array::empty(1, &size, NPY_INT64);
    if (!values || (wants_inverse && !inverse) || (wants_counts && !counts)) return nullptr;
    Buffer<npy_intp> order(SORTED ? size : 0);
    bool done = for_type(PyArray_TYPE(x.array()), [&](auto zero) {
        using T = decltype(zero);
        if (SORTED) sort_places(x.data<T>(), order.get(), size);
        found = runs(x.data<T>(), SORTED ? order.get() : nullptr, size, values.data<T>(),
                     inverse.data<int64_t>(), counts.data<int64_t>());
    });
    if (!done) return declined();
    PyObject *parts[] = {shortened(values, found),
                         inverse ? inverse.release() : shortened(inverse, 0), shortened(counts, found)};
    return Py_BuildValue("(NNN)", parts[0], parts[1], parts[2]);
}

// ---- histograms ---------------------------------------------------------------------------------

// (x, bins, low, high): how many elements fall into each of equal parts, counted in their own type
PyObject *count_in_bins(PyObject *const *a) {
    Array x, found;
    npy_intp bins;
    double low_, high_;
    if (!take_any(a[0], x) || !take_int(a[1], bins) || bins < 1 ||
        !take_float(a[2], low_) || !take_float(a[3], high_))
        return declined();
    int type = PyArray_TYPE(x.array());
    if (type != NPY_FLOAT && type != NPY_DOUBLE) return declined();
    npy_intp size = x.size();
    bool fits = true;
    for_type(type, [&](auto zero) {
        using T = decltype(zero);
        const T *data = x.data<T>();
        T low = T(low_), high = T(high_);
        if (low == 0 && high == 0 && size) {
            low = high = data[0];
            for (npy_intp i = 0; i < size; i++) {
                if (!std::isfinite(double(data[i]))) return void(fits = false);
                low = data[i] < low ? data[i] : low, high = data[i] > high ? data[i] : high;
            }
        }
        if (!std::isfinite(double(low)) || !std::isfinite(double(high)) || low > high) return void(fits = false);
        if (low == high) low -= 1, high += 1;
        found = Array::zeros({bins}, type);
        if (!found) return;
        T *to = found.data<T>();
        Buffer<int64_t> counts(bins);
        std::fill(counts.get(), counts.get() + bins, 0);
        for (npy_intp i = 0; i < size; i++)
            if (data[i] >= low && data[i] <= high)
                counts[std::min<npy_intp>(npy_intp((data[i] - low) * T(bins) / (high - low)), bins - 1)]++;
        for (npy_intp i = 0; i < bins; i++) to[i] = T(counts[i]);
    });
    return fits && found ? found.release() : declined();
}

// (points, axis, bins, limits): the edges of equal bins from the least coordinate to the greatest, or
// between two limits
PyObject *bin_edges(PyObject *const *a) {
    Array points;
    npy_intp axis, bins;
    double low = 0, high = 0;
    if (!take_any(a[0], points) || points.ndim() != 2 || !take_int(a[1], axis) || !take_int(a[2], bins) ||
        bins < 1)
        return declined();
    npy_intp rows = points.dim(0), width = points.dim(1), n = bins + 1;
    int type = PyArray_TYPE(points.array());
    if (type != NPY_FLOAT && type != NPY_DOUBLE) return declined();
    bool given = a[3] != Py_None, fits = true;
    if (given && (!PyTuple_Check(a[3]) || PyTuple_GET_SIZE(a[3]) != 2 ||
                  !take_float(PyTuple_GET_ITEM(a[3], 0), low) || !take_float(PyTuple_GET_ITEM(a[3], 1), high)))
        return declined();
    Array found = Array::empty(1, &n, type);
    if (!found) return nullptr;
    for_type(type, [&](auto zero) {
        using T = decltype(zero);
        const T *x = points.data<T>() + axis;
        for (npy_intp i = 0; i < rows && !given; i++) {
            double v = double(x[i * width]);
            if (v != v) return void(fits = false);
            low = !i || v < low ? v : low, high = !i || v > high ? v : high;
        }
        if (!std::isfinite(low) || !std::isfinite(high) || low > high) return void(fits = false);
        if (low == high) {
            if (!given && !rows) high = 1;
            else low -= 0.5, high += 0.5;
        }
        double step = (high - low) / double(bins);
        T *to = found.data<T>();
        for (npy_intp i = 0; i < bins; i++) to[i] = T(double(i) * step + low);
        to[bins] = T(high);
    });
    return fits ? found.release() : declined();
}

// (points, weight, edges): the weights of points in each cell of a grid, and the cell of each point
PyObject *count_in_grid(PyObject *const *a) {
    Array points, weight;
    if (!take_any(a[0], points) || !PyTuple_Check(a[2]) || points.ndim() != 2)
        return declined();
    int type = PyArray_TYPE(points.array()), axes = int(PyTuple_GET_SIZE(a[2]));
    npy_intp rows = points.dim(0), cells = 1;
    if ((type != NPY_FLOAT && type != NPY_DOUBLE) || axes > 16 || points.dim(1) != axes ||
        (a[1] != Py_None && (type_of(a[1]) != type || !take_any(a[1], weight))))
        return declined();
    Array edges[16];
    std::vector<npy_intp> shape(axes);
    for (int i = 0; i < axes; i++) {
        PyObject *one = PyTuple_GET_ITEM(a[2], i);
        if (type_of(one) != type || !take_any(one, edges[i]) || edges[i].size() < 2)
            return declined();
        cells *= shape[i] = edges[i].size() - 1;
    }
    Array total = Array::empty(shape, type), place = Array::empty(1, &rows, NPY_INT64);
    if (!total || !place) return nullptr;
    Buffer<double> sums(cells);
    std::fill(sums.get(), sums.get() + cells, 0.0);
    for_type(type, [&](auto zero) {
        using T = decltype(zero);
        for (npy_intp r = 0; r < rows; r++) {
            npy_intp at = 0;
            for (int i = 0; i < axes && at >= 0; i++) {
                const T *e = edges[i].data<T>();
                T x = points.data<T>()[r * axes + i];
                if (!(x >= e[0] && x <= e[shape[i]])) at = -1;
                else  // the last cell is closed
                    at = at * shape[i] + std::min<npy_intp>(std::upper_bound(e, e + shape[i] + 1, x) - e - 1, shape[i] - 1);
            }
            place.data<int64_t>()[r] = at;
            if (at >= 0) sums[at] += weight ? double(weight.data<T>()[r]) : 1.0;
        }
        for (npy_intp i = 0; i < cells; i++) total.data<T>()[i] = T(sums[i]);
    });
    return results(total, place);
}

constexpr Call distinct = distinct_of<true>, distinct_runs = distinct_of<false>;

PyMethodDef methods[] = {NETWORK_METHOD(searchsorted, 6),
                         NETWORK_METHOD(bucketize, 4),
                         NETWORK_METHOD(nonzero_static, 3),
                         NETWORK_METHOD(same, 2),
                         NETWORK_METHOD(distinct, 3),
                         NETWORK_METHOD(distinct_runs, 3),
                         NETWORK_METHOD(count_in_bins, 4),
                         NETWORK_METHOD(count_in_grid, 3),
                         NETWORK_METHOD(bin_edges, 4),
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

int register_network_searching(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
