// Reading and writing by index: flambeau/kernels/moving/indexing.py.
//
// What only moves elements is written for sizes of elements, not for types. Threads split the work
// so that no two of them write to the same place.
#include "kernels/moving/places.h"
#include "kernels/network/module.h"

#include <atomic>

namespace network {

namespace {

// ---- dispatch on types
// ----------------------------------------------------------------------------

struct Pair128 {
    uint64_t a, b;
};

// Calls body(T()) for an unsigned type of that size; false where there is none.
template <class Body>
bool with_size(npy_intp size, Body body) {
    switch (size) {
        case 1: body(uint8_t()); return true;
        case 2: body(uint16_t()); return true;
        case 4: body(uint32_t()); return true;
        case 8: body(uint64_t()); return true;
        case 16: body(Pair128()); return true;
    }
    return false;
}

// Calls body(T()) for a type that can be added up.
template <class Body>
bool with_number(int type, Body body) {
    switch (dtype_of(type)) {
        case F4: body(float()); return true;
        case F8: body(double()); return true;
        case I8: body(int64_t()); return true;
        case I4: body(int32_t()); return true;
        default: return false;
    }
}

bool has_references(const Array &x) { return PyDataType_REFCHK(PyArray_DESCR(x.array())); }

bool writable(PyObject *x, Array &to) {
    PyArrayObject *array = (PyArrayObject *)x;
    if (!is_plain_array(x) || !PyArray_IS_C_CONTIGUOUS(array) || !PyArray_ISWRITEABLE(array))
        return false;
    Py_INCREF(x);
    to = Array(x);
    return !has_references(to);
}

bool overlap(const Array &a, const Array &b) {
    const char *p = a.data<char>(), *q = b.data<char>();
    return p < q + PyArray_NBYTES(b.array()) && q < p + PyArray_NBYTES(a.array());
}

// ---- gather and scatter
// ---------------------------------------------------------------------------

// An array indexed along one axis by an array of the same number of axes, which may be smaller.
// Both are seen as (outer, n, inner); offsets are empty where the other axes agree.
struct Along {
    npy_intp axis, outer, n, inner, size, outer_step, step;
    std::vector<npy_intp> outer_offsets, inner_offsets;

    bool read(const Array &x, const npy_intp *shape, npy_intp axis_) {
        int ndim = x.ndim();
        axis = axis_ < 0 ? axis_ + ndim : axis_;
        if (axis < 0 || axis >= ndim) return false;
        outer = product(shape, shape + axis);
        n = shape[axis];
        inner = product(shape + axis + 1, shape + ndim);
        size = x.dim(int(axis));
        step = product(x.shape() + axis + 1, x.shape() + ndim);
        outer_step = size * step;
        for (int i = 0; i < ndim; i++)
            if (i != axis && shape[i] > x.dim(i)) return false;
        offsets(x.shape(), shape, 0, int(axis), size * step, outer_offsets);
        offsets(x.shape(), shape, int(axis) + 1, ndim, 1, inner_offsets);
        return true;
    }
    npy_intp outer_at(npy_intp o) const {
        return outer_offsets.empty() ? o * outer_step : outer_offsets[o];
    }
    npy_intp inner_at(npy_intp j) const { return inner_offsets.empty() ? j : inner_offsets[j]; }

 private:
    static void offsets(const npy_intp *x, const npy_intp *shape, int first, int last,
                        npy_intp unit, std::vector<npy_intp> &to) {
        if (std::equal(shape + first + (first < last), shape + last, x + first + (first < last)))
            return;
        npy_intp count = product(shape + first, shape + last);
        to.resize(count);
        for (npy_intp i = 0; i < count; i++) {
            npy_intp rest = i, step = unit, offset = 0;
            for (int d = last - 1; d >= first; d--) {
                offset += rest % shape[d] * step;
                rest /= shape[d];
                step *= x[d];
            }
            to[i] = offset;
        }
    }
};

CLONES bool any_wrong(const int64_t *indices, npy_intp n, npy_intp size) {
    uint64_t bad = 0;
    NETWORK_PRAGMA(omp simd reduction(| : bad))
    for (npy_intp i = 0; i < n; i++) bad |= uint64_t(uint64_t(indices[i]) >= uint64_t(size));
    return bad;
}

// Whether there are indices outside [0, size), and the first of them.
bool find_wrong(const int64_t *indices, npy_intp n, npy_intp size, int64_t &index) {
    std::atomic<bool> wrong{false};
    parallel_for(n, PARALLEL_FROM, [&](int64_t first, int64_t last) {
        if (any_wrong(indices + first, last - first, size)) wrong = true;
    });
    if (!wrong) return false;
    while (uint64_t(*indices) < uint64_t(size)) indices++;
    index = *indices;
    return true;
}

PyObject *out_of_bounds(int64_t index, npy_intp axis, npy_intp size) {
    PyErr_Format(PyExc_RuntimeError, "index %lld is out of bounds for dimension %zd with size %zd",
                 (long long)index, Py_ssize_t(axis), Py_ssize_t(size));
    return nullptr;
}

// Of indices of short rows many are looked at at once.
constexpr npy_intp LOOKED_AT = 1024;

// From an index out of bounds on nothing is done, and `bad` is set.
template <class E>
void gather_all(const Along &a, const E *x, const int64_t *at, E *to, std::atomic<bool> &bad) {
    npy_intp unit = a.inner == 1 ? a.n : a.inner, rows = a.inner == 1 ? a.outer : a.outer * a.n;
    parallel_for(
        rows, std::max<npy_intp>(1, PARALLEL_FROM / 2 / (unit + 1)),
        [&](int64_t first, int64_t last) {
            npy_intp known = first, many = LOOKED_AT / (unit + 1) + 1;  // rows that are right
            for (npy_intp row = first; row < last; row++) {
                const E *base = x + a.outer_at(a.inner == 1 ? row : row / a.n);
                const int64_t *where = at + row * unit;
                E *place = to + row * unit;
                if (row == known) {
                    npy_intp rows = std::min<npy_intp>(many, last - row);
                    if (any_wrong(where, rows * unit, a.size)) {
                        bad = true;
                        return;
                    }
                    known += rows;
                }
                if (a.inner == 1)
                    for (npy_intp i = 0; i < unit; i++) place[i] = base[where[i] * a.step];
                else if (a.inner_offsets.empty())
                    for (npy_intp j = 0; j < unit; j++) place[j] = base[where[j] * a.step + j];
                else
                    for (npy_intp j = 0; j < unit; j++)
                        place[j] = base[where[j] * a.step + a.inner_offsets[j]];
            }
        },
        1);
}

// Indices that are the same for all that lies behind the axis, as an array of extents 1 there: else nothing.
Array one_index_a_row(PyObject *indices, npy_intp axis) {
    if (!is_plain_array(indices)) return Array();
    PyArrayObject *given = (PyArrayObject *)indices;
    int ndim = PyArray_NDIM(given);
    if (axis < 0) axis += ndim;
    npy_intp shape[NPY_MAXDIMS], behind = 1;
    for (int d = 0; d < ndim; d++) {
        shape[d] = d > axis ? 1 : PyArray_DIM(given, d);
        if (d <= axis || PyArray_DIM(given, d) == 1) continue;
        if (PyArray_STRIDE(given, d)) return Array();
        behind *= PyArray_DIM(given, d);
    }
    if (behind < 4) return Array();
    Py_INCREF(PyArray_DESCR(given));
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(given), ndim, shape, PyArray_STRIDES(given),
                                          PyArray_DATA(given), 0, nullptr);
    Array narrow;
    if (view && take<int64_t>(view, narrow) && (PyObject *)narrow.array() == view) {
        Py_INCREF(indices);  // whose memory it is
        if (PyArray_SetBaseObject((PyArrayObject *)view, indices)) narrow = Array();
    }
    Py_XDECREF(view);
    return narrow;
}

template <class E>
void gather_rows(const Along &a, const E *x, const int64_t *at, E *to, std::atomic<bool> &bad) {
    npy_intp rows = a.outer * a.n;
    if (any_wrong(at, rows, a.size)) {
        bad = true;
        return;
    }
    parallel_for(
        rows, std::max<npy_intp>(1, PARALLEL_FROM / 2 / (a.inner + 1)),
        [&](int64_t first, int64_t last) {
            for (npy_intp row = first; row < last; row++) {
                const E *from = x + a.outer_at(row / a.n) + at[row] * a.step;
                E *place = to + row * a.inner;
                if (a.inner_offsets.empty()) std::copy(from, from + a.inner, place);
                else
                    for (npy_intp j = 0; j < a.inner; j++) place[j] = from[a.inner_offsets[j]];
            }
        },
        1);
}

// What is at the indices, all of them or (`rows`) one for each row, in an array of that shape.
PyObject *gathered(const Array &x, const Along &a, const Array &indices, const npy_intp *shape, bool rows) {
    PyArray_Descr *descr = PyArray_DESCR(x.array());
    Py_INCREF(descr);
    Array result(PyArray_NewFromDescr(&PyArray_Type, descr, x.ndim(), (npy_intp *)shape, nullptr, nullptr, 0, nullptr));
    if (!result) return nullptr;
    int64_t wrong = 0;
    bool failed, done = false;
    const int64_t *at = indices.data<int64_t>();
    {
        Unlocked unlocked;
        std::atomic<bool> bad{false};
        done = with_size(PyArray_ITEMSIZE(x.array()), [&](auto zero) {
            using E = decltype(zero);
            if (rows) gather_rows(a, x.data<E>(), at, result.data<E>(), bad);
            else gather_all(a, x.data<E>(), at, result.data<E>(), bad);
        });
        failed = bad && find_wrong(at, indices.size(), a.size, wrong);
    }
    if (failed) return out_of_bounds(wrong, a.axis, a.size);
    if (!done) return declined();
    return result.release();
}

PyObject *gather(PyObject *const *args) {
    Array x, indices, narrow;
    npy_intp axis;
    Along a;
    if (PyLong_Check(args[1]) && take_int(args[1], axis)) narrow = one_index_a_row(args[2], axis);
    if (narrow && take_any(args[0], x) && x.ndim() == PyArray_NDIM((PyArrayObject *)args[2]) && !has_references(x) &&
        a.read(x, PyArray_SHAPE((PyArrayObject *)args[2]), axis))
        return gathered(x, a, narrow, PyArray_SHAPE((PyArrayObject *)args[2]), true);
    if (!take_any(args[0], x) || !take_int(args[1], axis) || !take<int64_t>(args[2], indices) ||
        x.ndim() != indices.ndim() || x.ndim() == 0 || has_references(x) ||
        !a.read(x, indices.shape(), axis))
        return declined();
    return gathered(x, a, indices, indices.shape(), false);
}

// combine(to, from) at every index. Threads split what lies before the axis, or else what lies
// behind it.
template <class E, class Combine>
void scatter_all(const Along &a, const Along &s, E *x, const int64_t *at, const E *src,
                 std::atomic<bool> &bad, Combine combine) {
    auto run = [&](npy_intp o0, npy_intp o1, npy_intp j0, npy_intp j1) {
        for (npy_intp o = o0; o < o1; o++) {
            E *base = x + a.outer_at(o);
            const E *from = src + s.outer_at(o);
            if (a.inner == 1) {
                const int64_t *where = at + o * a.n;
                if (any_wrong(where, a.n, a.size)) {
                    bad = true;
                    continue;
                }
                for (npy_intp i = 0; i < a.n; i++)
                    combine(base[where[i] * a.step], from[i * s.step]);
                continue;
            }
            for (npy_intp i = 0; i < a.n; i++) {
                const int64_t *where = at + (o * a.n + i) * a.inner;
                const E *row = from + i * s.step;
                if (any_wrong(where + j0, j1 - j0, a.size))
                    bad = true;
                else if (a.inner_offsets.empty() && s.inner_offsets.empty())
                    for (npy_intp j = j0; j < j1; j++) combine(base[where[j] * a.step + j], row[j]);
                else
                    for (npy_intp j = j0; j < j1; j++)
                        combine(base[where[j] * a.step + a.inner_at(j)], row[s.inner_at(j)]);
            }
        }
    };
    npy_intp work = a.n * a.inner;
    if (a.outer >= max_threads() || a.inner == 1)
        parallel_for(
            a.outer, std::max<npy_intp>(1, PARALLEL_FROM / 2 / (work + 1)),
            [&](int64_t first, int64_t last) { run(first, last, 0, a.inner); }, 1);
    else
        parallel_for(a.inner, std::max<npy_intp>(16, PARALLEL_FROM / 2 / (a.outer * a.n + 1)),
                     [&](int64_t first, int64_t last) { run(0, a.outer, first, last); });
}

enum Reduce { WRITE, SUM, PROD, AMAX, AMIN, UNKNOWN };

Reduce reduce_of(PyObject *name) {
    if (name == Py_None) return WRITE;
    if (!PyUnicode_Check(name)) return UNKNOWN;
    static const struct {
        const char *name;
        Reduce reduce;
    } known[] = {{"sum", SUM},       {"add", SUM},   {"prod", PROD},
                 {"multiply", PROD}, {"amax", AMAX}, {"amin", AMIN}};
    for (auto &k : known)
        if (PyUnicode_CompareWithASCIIString(name, k.name) == 0) return k.reduce;
    return UNKNOWN;
}

struct Sum {
    template <class T>
    static INLINE T call(T x, T y) { return x + y; }
};
struct Product {
    template <class T>
    static INLINE T call(T x, T y) { return x * y; }
};
struct Largest {  // NaN wins
    template <class T>
    static INLINE T call(T x, T y) { return (y > x) | (y != y) ? y : x; }
};
struct Least {
    template <class T>
    static INLINE T call(T x, T y) { return (y < x) | (y != y) ? y : x; }
};

template <class Body>
void with_combine(Reduce reduce, Body body) {
    switch (reduce) {
        case PROD: return body(Product());
        case AMAX: return body(Largest());
        case AMIN: return body(Least());
        default: return body(Sum());
    }
}

PyObject *scatter_reduce(PyObject *const *args, Reduce reduce) {
    Array x, indices, src;
    npy_intp axis;
    Along a, s;
    if (!writable(args[0], x) || !take_int(args[1], axis) || !take<int64_t>(args[2], indices) ||
        !take_any(args[3], src) || x.ndim() != indices.ndim() || src.ndim() != x.ndim() ||
        x.ndim() == 0 ||
        PyArray_DESCR(x.array())->type_num != PyArray_DESCR(src.array())->type_num ||
        !indices.size() || overlap(x, src) || !a.read(x, indices.shape(), axis) ||
        !s.read(src, indices.shape(), axis) || s.size < a.n)
        return declined();
    const int64_t *at = indices.data<int64_t>();
    int64_t wrong = 0;
    bool failed, done = false;
    {
        Unlocked unlocked;
        std::atomic<bool> bad{false};
        if (reduce == WRITE)
            done = with_size(PyArray_ITEMSIZE(x.array()), [&](auto zero) {
                using E = decltype(zero);
                scatter_all(a, s, x.data<E>(), at, src.data<E>(), bad,
                            [](E &to, E from) { to = from; });
            });
        else
            done = with_number(PyArray_TYPE(x.array()), [&](auto zero) {
                using E = decltype(zero);
                with_combine(reduce, [&](auto op) {
                    scatter_all(a, s, x.data<E>(), at, src.data<E>(), bad,
                                [](E &x, E y) { x = decltype(op)::call(x, y); });
                });
            });
        failed = bad && find_wrong(at, indices.size(), a.size, wrong);
    }
    if (failed) return out_of_bounds(wrong, axis, a.size);
    if (!done) return declined();
    Py_INCREF(args[0]);
    return args[0];
}

PyObject *scatter_(PyObject *const *args) {
    Reduce reduce = reduce_of(args[4]);
    int included = PyObject_IsTrue(args[5]);
    if (reduce == UNKNOWN || (reduce != WRITE && !included)) return declined();
    return scatter_reduce(args, reduce);
}

PyObject *scatter_add_(PyObject *const *args) { return scatter_reduce(args, SUM); }

// ---- rows
// -----------------------------------------------------------------------------------------

template <class Op, class T>
CLONES void combine_run(const T *from, npy_intp n, T *to) {
    INDEPENDENT
    for (npy_intp j = 0; j < n; j++) to[j] = Op::call(to[j], from[j]);
}

// x[rows] combined with values along an axis, one after the other where rows are equal; those equal
// to `skipped` count for nothing.
PyObject *reduce_rows_(PyObject *const *args) {
    Array x, rows, values;
    npy_intp axis, skipped;
    Reduce reduce = reduce_of(args[5]);
    if (!writable(args[0], x) || !take_int(args[1], axis) || !take<int64_t>(args[2], rows) ||
        !take_any(args[3], values) || !take_int(args[4], skipped) || x.ndim() == 0 ||
        values.ndim() != x.ndim() || rows.ndim() != 1 ||
        PyArray_TYPE(x.array()) != PyArray_TYPE(values.array()) || overlap(x, values) ||
        reduce == WRITE || reduce == UNKNOWN)
        return declined();
    if (axis < 0) axis += x.ndim();
    if (axis < 0 || axis >= x.ndim()) return declined();
    std::vector<npy_intp> expected = x.dims();
    expected[axis] = rows.size();
    if (expected != values.dims()) return declined();
    npy_intp outer = product(x.shape(), x.shape() + axis), size = x.dim(int(axis)), n = rows.size();
    npy_intp inner = product(x.shape() + axis + 1, x.shape() + x.ndim());
    const int64_t *at = rows.data<int64_t>();
    int64_t wrong;
    bool done = false;
    {
        Unlocked unlocked;
        if (!find_wrong(at, n, size, wrong))
            done = with_number(PyArray_TYPE(x.array()), [&](auto zero) {
                using E = decltype(zero);
                E *to = x.data<E>();
                const E *from = values.data<E>();
                auto run = [&](npy_intp o0, npy_intp o1, npy_intp j0, npy_intp j1) {
                    with_combine(reduce, [&](auto op) {
                        using Op = decltype(op);
                        for (npy_intp o = o0; o < o1 && inner == 1; o++) {
                            E *place = to + o * size;
                            const E *row = from + o * n;
                            for (npy_intp i = 0; i < n; i++)
                                if (at[i] != skipped) place[at[i]] = Op::call(place[at[i]], row[i]);
                        }
                        for (npy_intp o = o0; o < o1 && inner != 1; o++)
                            for (npy_intp i = 0; i < n; i++) {
                                if (at[i] == skipped) continue;
                                E *place = to + (o * size + at[i]) * inner;
                                const E *row = from + (o * n + i) * inner;
                                combine_run<Op>(row + j0, j1 - j0, place + j0);
                            }
                    });
                };
                if (outer >= max_threads() || inner == 1)
                    parallel_for(
                        outer, std::max<npy_intp>(1, PARALLEL_FROM / 2 / (n * inner + 1)),
                        [&](int64_t first, int64_t last) { run(first, last, 0, inner); }, 1);
                else
                    parallel_for(inner, std::max<npy_intp>(16, PARALLEL_FROM / 2 / (outer * n + 1)),
                                 [&](int64_t first, int64_t last) { run(0, outer, first, last); });
            });
    }
    if (!done) return declined();
    Py_INCREF(args[0]);
    return args[0];
}

PyObject *embedding(PyObject *const *args) {
    Array weight, indices;
    if (!take_any(args[0], weight) || !take<int64_t>(args[1], indices) || weight.ndim() != 2 ||
        has_references(weight))
        return declined();
    std::vector<npy_intp> shape = indices.dims();
    shape.push_back(weight.dim(1));
    if (shape.size() > 32) return declined();
    PyArray_Descr *descr = PyArray_DESCR(weight.array());
    Py_INCREF(descr);
    Array result(PyArray_NewFromDescr(&PyArray_Type, descr, int(shape.size()), shape.data(),
                                      nullptr, nullptr, 0, nullptr));
    if (!result) return nullptr;
    const int64_t *at = indices.data<int64_t>();
    int64_t wrong;
    bool failed;
    {
        Unlocked unlocked;
        failed = find_wrong(at, indices.size(), weight.dim(0), wrong);
        npy_intp bytes = weight.dim(1) * PyArray_ITEMSIZE(weight.array());
        const char *from = weight.data<char>();
        char *to = result.data<char>();
        if (!failed)
            parallel_for(indices.size(), std::max<npy_intp>(1, 4 * PARALLEL_FROM / (bytes + 1)),
                         [&](int64_t first, int64_t last) {
                             for (int64_t i = first; i < last; i++)
                                 std::memcpy(to + i * bytes, from + at[i] * bytes, bytes);
                         });
    }
    if (failed) {
        PyErr_SetString(PyExc_IndexError, "index out of range in self");
        return nullptr;
    }
    return result.release();
}

CLONES npy_intp count_true(const uint8_t *p, npy_intp n) {
    npy_intp count = 0;
    NETWORK_SUM(count)
    for (npy_intp i = 0; i < n; i++) count += p[i] != 0;
    return count;
}

// Calls body(i) for the places of a mask of bytes 0 and 1 until `count` of them are true, leaving out
// eight at a time that are false. `body` is to write whether its place counts or not, and then to
// go on by the byte itself: there is no branch to guess.
template <class Body>
INLINE void for_true(const uint8_t *mask, npy_intp n, const npy_intp &found, npy_intp count, Body body) {
    npy_intp i = 0;
    for (; i + 8 <= n && found + 8 <= count; i += 8) {
        uint64_t eight;
        std::memcpy(&eight, mask + i, 8);
        if (eight)
            for (int k = 0; k < 8; k++) body(i + k);
    }
    for (; i < n && found < count; i++) body(i);
}

template <class T>
void keep_true(const uint8_t *mask, npy_intp n, const char *from_, char *to_, npy_intp count) {
    const T *from = (const T *)from_;
    T *to = (T *)to_;
    npy_intp found = 0;
    for_true(mask, n, found, count, [&](npy_intp i) {
        to[found] = from[i];
        found += mask[i];
    });
}

// Elements of the first array where the second, of the same shape, is true.
PyObject *masked_elements(const Array &x, const Array &mask) {
    npy_intp item = PyArray_ITEMSIZE(x.array());
    void (*keep)(const uint8_t *, npy_intp, const char *, char *, npy_intp) =
        item == 1   ? keep_true<uint8_t>
        : item == 2 ? keep_true<uint16_t>
        : item == 4 ? keep_true<uint32_t>
        : item == 8 ? keep_true<uint64_t>
                    : nullptr;
    if (!keep || PyDataType_REFCHK(PyArray_DESCR(x.array()))) return declined();
    constexpr npy_intp piece = 1 << 14;
    const uint8_t *p = mask.data<uint8_t>();
    npy_intp size = x.size(), pieces = (size + piece - 1) / piece;
    std::vector<npy_intp> starts(pieces + 1, 0);
    parallel_for(pieces, 4, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; i++)
            starts[i + 1] = count_true(p + i * piece, std::min(piece, size - i * piece));
    }, 1);
    for (npy_intp i = 0; i < pieces; i++) starts[i + 1] += starts[i];
    PyArray_Descr *descr = PyArray_DESCR(x.array());
    Py_INCREF(descr);
    Array result(PyArray_NewFromDescr(&PyArray_Type, descr, 1, &starts[pieces], nullptr, nullptr, 0,
                                      nullptr));
    if (!result) return nullptr;
    Unlocked unlocked;
    parallel_for(pieces, 4, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; i++)
            keep(p + i * piece, std::min(piece, size - i * piece), x.data<char>() + i * piece * item,
                 result.data<char>() + starts[i] * item, starts[i + 1] - starts[i]);
    }, 1);
    return result.release();
}

PyObject *masked(PyObject *const *args) {
    Array x, mask;
    if (type_of(args[1]) != NPY_BOOL || !take_any(args[0], x) || !take_any(args[1], mask) ||
        !same_shape(x, mask))
        return declined();
    return masked_elements(x, mask);
}

// Coordinates of what is true: those of one dimension lie side by side.
PyObject *nonzero(PyObject *const *args) {
    Array x, truth;
    if (!take_any(args[0], x) || dtype_of(PyArray_TYPE(x.array())) == NONE)
        return declined();
    if (PyArray_TYPE(x.array()) != NPY_BOOL) {
        truth = Array(PyArray_Cast(x.array(), NPY_BOOL));
        if (!truth) return nullptr;
        x = std::move(truth);
    }
    if (!x.ndim()) return Array::empty({npy_intp(*x.data<bool>()), 0}, NPY_INT64).release();
    npy_intp ndim = x.ndim(), width = x.dim(int(ndim) - 1), rows = width ? x.size() / width : 0;
    const uint8_t *p = x.data<uint8_t>();
    std::vector<npy_intp> starts(rows + 1, 0);
    for (npy_intp row = 0; row < rows; row++)
        starts[row + 1] = starts[row] + count_true(p + row * width, width);
    npy_intp count = starts[rows];
    Array result = Array::empty({ndim, count}, NPY_INT64);
    if (!result) return nullptr;
    {
        Unlocked unlocked;
        parallel_for(
            rows, std::max<npy_intp>(1, PARALLEL_FROM / (width + 1)),
            [&](int64_t first, int64_t last) {
                std::vector<npy_intp> place(ndim, 0);
                for (npy_intp row = first; row < last; row++) {
                    npy_intp rest = row;
                    for (npy_intp d = ndim - 2; d >= 0; d--) {
                        place[d] = rest % x.dim(int(d));
                        rest /= x.dim(int(d));
                    }
                    const uint8_t *from = p + row * width;
                    int64_t *to = result.data<int64_t>() + starts[row];
                    npy_intp found = 0, all = starts[row + 1] - starts[row];
                    for (npy_intp d = 0; d < ndim - 1; d++) std::fill_n(to + d * count, all, place[d]);
                    int64_t *last = to + (ndim - 1) * count;
                    for_true(from, width, found, all, [&](npy_intp j) {
                        last[found] = j;
                        found += from[j];
                    });
                }
            },
            1);
    }
    PyArray_STRIDES(result.array())[1] = sizeof(int64_t);   // also where nothing is found
    return PyArray_Transpose(result.array(), nullptr);
}

// A contiguous copy, made by all threads: what is written first is then theirs.
PyObject *copy(PyObject *const *args) {
    PyArrayObject *x = (PyArrayObject *)args[0];
    if (!is_plain_array(args[0]) || !PyArray_IS_C_CONTIGUOUS(x) ||
        PyDataType_REFCHK(PyArray_DESCR(x)))
        return declined();
    Py_INCREF(PyArray_DESCR(x));
    Array result(PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(x), PyArray_NDIM(x),
                                      PyArray_SHAPE(x), nullptr, nullptr, 0, nullptr));
    if (!result) return nullptr;
    Unlocked unlocked;
    const char *from = (const char *)PyArray_DATA(x);
    char *to = result.data<char>();
    parallel_for(
        PyArray_NBYTES(x), 8 * PARALLEL_FROM,
        [&](int64_t first, int64_t last) { std::memcpy(to + first, from + first, last - first); },
        4096);
    return result.release();
}

// A contiguous copy of x to be changed, or x itself where the result of a call goes there.
PyObject *to_update(PyObject *const *args) {
    if (!moving::is_movable(args[0])) return declined();
    return (PyObject *)moving::to_update((PyArrayObject *)args[0]);
}

PyMethodDef methods[] = {NETWORK_METHOD(gather, 3),       NETWORK_METHOD(to_update, 1),       NETWORK_METHOD(scatter_, 6),
                         NETWORK_METHOD(scatter_add_, 4), NETWORK_METHOD(reduce_rows_, 6),
                         NETWORK_METHOD(embedding, 2),    NETWORK_METHOD(nonzero, 1),
                         NETWORK_METHOD(masked, 2),
                         NETWORK_METHOD(copy, 1),         {nullptr, nullptr, 0, nullptr}};

}  // namespace

}  // namespace network

PyObject *moving::masked(PyArrayObject *x, PyArrayObject *mask) {
    PyObject *args[] = {(PyObject *)x, (PyObject *)mask};
    return network::masked(args);
}

int register_network_indexing(PyObject *module) {
    return PyModule_AddFunctions(module, network::methods);
}
