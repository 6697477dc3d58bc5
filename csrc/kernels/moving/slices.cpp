// Whole slices, and single elements, read and written by index: index_add, scatter, take and their
// kin. A call that is wrong raises Misfit, which leaves it to the twin of the call; what is right but
// has no loop here is declined.
#include "kernels/moving/places.h"

#include "tensors.h"
#include "kernels/pointwise/kernel.h"
#include "parallel.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace moving {

PyObject *Misfit;

PyObject *misfit() {
    PyErr_SetString(Misfit, "the arguments do not fit");
    return nullptr;
}

constexpr npy_intp SMALL = 1 << 15;  // elements: more are for loops that use threads

static PyArrayObject *array(PyObject *x) { return (PyArrayObject *)x; }
static PyObject *as_object(PyArrayObject *x) { return (PyObject *)x; }

static bool read_int(PyObject *x, npy_intp &to) {
    if (!PyLong_Check(x)) return false;
    to = PyLong_AsSsize_t(x);
    return to != -1 || !PyErr_Occurred() || (PyErr_Clear(), false);
}

// An array of int64 or int32.
static bool is_index(PyArrayObject *x, bool &wide) {
    DType type = dtype_of(PyArray_TYPE(x));
    wide = type == I8;
    return (type == I8 || type == I4) && is_plain(as_object(x));
}

static int64_t at(const char *p, bool wide) { return wide ? *(const int64_t *)p : *(const int32_t *)p; }

// ---- slices -------------------------------------------------------------------------------------

// Extents and strides; an array without dimensions is one of a single element.
static int rank(PyArrayObject *x) { return std::max(PyArray_NDIM(x), 1); }
static npy_intp extent(PyArrayObject *x, int d) { return PyArray_NDIM(x) ? PyArray_DIM(x, d) : 1; }
static npy_intp stride(PyArrayObject *x, int d) { return PyArray_NDIM(x) ? PyArray_STRIDE(x, d) : 0; }

// Do the slices of `source` along `dim` take the places in `x` that `index` names?
static bool combine(PyArrayObject *x, npy_intp dim, PyArrayObject *index, PyArrayObject *source,
                    bool copies = false) {
    int nd = rank(x);
    bool wide;
    if (PyArray_NDIM(index) > 1 || !is_index(index, wide) || PyArray_DESCR(x) != PyArray_DESCR(source) ||
        rank(source) != nd || dim < 0 || dim >= nd)
        return false;
    for (int d = 0; d < nd; d++)
        if (extent(source, d) != (d == dim ? PyArray_SIZE(index) : extent(x, d))) return false;
    return PyArray_NDIM(x) || copies || PyArray_SIZE(source) == 1;
}

static bool within(PyArrayObject *index, npy_intp size, bool negative = false) {
    bool wide;
    is_index(index, wide);
    npy_intp n = PyArray_SIZE(index), step = PyArray_NDIM(index) ? PyArray_STRIDE(index, 0) : 0;
    if (PyArray_NDIM(index) > 1) {
        if (!PyArray_IS_C_CONTIGUOUS(index)) return false;
        step = PyArray_ITEMSIZE(index);
    }
    const char *p = PyArray_BYTES(index);
    for (npy_intp i = 0; i < n; i++) {
        int64_t place = at(p + i * step, wide);
        if (place < (negative ? -size : 0) || place >= size) return false;
    }
    return true;
}

// `x`, or its only element as a vector.
static PyObject *at_least_a_vector(PyArrayObject *x) {
    npy_intp one = 1;
    PyArray_Dims dims = {&one, 1};
    if (!PyArray_NDIM(x)) return PyArray_Newshape(x, &dims, NPY_CORDER);
    Py_INCREF(x);
    return as_object(x);
}

// A vector of indices along `dim` of `x`, and the slices there.
struct Slices {
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    Target target;
    Places places;

    bool read(PyArrayObject *x, PyArrayObject *index, npy_intp dim) {
        fast::Ref vector(at_least_a_vector(index));
        for (int d = 0; d < rank(x); d++) shape[d] = extent(x, d), strides[d] = stride(x, d);
        target = {rank(x), shape, strides, PyArray_BYTES(x), PyArray_ITEMSIZE(x)};
        PyObject *indices[] = {vector.get()};
        int where = int(dim);
        return vector && places.read(target, indices, 1, &where);
    }
};

template <class T>
static void multiply(PyArrayObject *x, T factor) {
    T *p = (T *)PyArray_DATA(x);
    for (npy_intp i = 0; i < PyArray_SIZE(x); i++) p[i] *= factor;
}

// `source` times a number, as a new reference; null without an error: not of these types.
static PyArrayObject *scaled(PyArrayObject *source, PyObject *alpha) {
    bool whole = PyLong_CheckExact(alpha);
    if (!whole && !PyFloat_CheckExact(alpha)) return nullptr;
    double factor = whole ? PyLong_AsDouble(alpha) : PyFloat_AS_DOUBLE(alpha);
    int overflow = 0;
    long long integer = whole ? PyLong_AsLongLongAndOverflow(alpha, &overflow) : 0;
    if (overflow || PyErr_Occurred()) return PyErr_Clear(), nullptr;
    if (whole && integer == 1) return Py_INCREF(source), source;
    DType type = dtype_of(PyArray_TYPE(source));
    if (type != F4 && type != F8 && !(type == I8 && whole)) return nullptr;
    PyArrayObject *r = copied(source);
    if (!r) return nullptr;
    if (type == F4) multiply<float>(r, float(factor));
    else if (type == F8) multiply<double>(r, factor);
    else multiply<int64_t>(r, integer);
    return r;
}

// A copy of x with those slices along `dim`, or with them added.
static PyObject *put_slices(PyArrayObject *x, PyArrayObject *index, npy_intp dim, PyArrayObject *source,
                            bool adds) {
    fast::Ref values(at_least_a_vector(source));
    PyArrayObject *r = values ? to_update(x) : nullptr;
    if (!r) return nullptr;
    Slices slices;
    if (slices.read(r, index, dim) && put(slices.target, slices.places, array(values.get()), adds))
        return as_object(r);
    Py_DECREF(r);
    return declined();
}

// index_add(x, index, source, dim, alpha)
static PyObject *index_add(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    if (names || n != 5 || !read_int(args[3], dim)) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]), *source = array(args[2]);
    if (!is_movable(args[0]) || !is_movable(args[2]) || !combine(x, dim, index, source)) return misfit();
    if (PyArray_SIZE(x) > SMALL || PyArray_SIZE(source) > SMALL || !within(index, extent(x, int(dim))))
        return declined();
    fast::Ref values((PyObject *)scaled(source, args[4]));
    if (!values) return PyErr_Occurred() ? nullptr : declined();
    return put_slices(x, index, dim, array(values.get()), true);
}

// index_copy(x, index, source, dim)
static PyObject *index_copy(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    if (names || n != 4 || !read_int(args[3], dim)) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]), *source = array(args[2]);
    if (!is_movable(args[0]) || !is_movable(args[2]) || !combine(x, dim, index, source, true) ||
        PyArray_TYPE(index) != NPY_INT64)
        return misfit();
    if (PyArray_SIZE(x) > SMALL || !within(index, extent(x, int(dim)))) return declined();
    return put_slices(x, index, dim, source, false);
}

template <class T>
CLONES void pick(const T *from, const int64_t *at, npy_intp n, T *to) {
    for (npy_intp i = 0; i < n; i++) to[i] = from[at[i]];
}

// The slices of a large array that lies row by row; the index is within bounds.
static PyArrayObject *select_slices(PyArrayObject *x, PyArrayObject *index, int dim) {
    npy_intp shape[NPY_MAXDIMS], outer = 1, inner = PyArray_ITEMSIZE(x), n = PyArray_SIZE(index);
    npy_intp size = PyArray_DIM(x, dim);
    for (int d = 0; d < PyArray_NDIM(x); d++) {
        shape[d] = d == dim ? n : PyArray_DIM(x, d);
        if (d != dim) (d < dim ? outer : inner) *= shape[d];
    }
    PyArrayObject *r = empty(x, PyArray_NDIM(x), shape);
    if (!r || !PyArray_SIZE(r)) return r;
    const char *from = PyArray_BYTES(x);
    char *to = PyArray_BYTES(r);
    const int64_t *at = (const int64_t *)PyArray_DATA(index);
    bool single = inner == PyArray_ITEMSIZE(x);
    Py_BEGIN_ALLOW_THREADS;
    if (single && outer > 1) {
        single = with_size(inner, [&](auto type) {
            using T = decltype(type);
            parallel_for(outer, PARALLEL_FROM / n + 1, [&](int64_t begin, int64_t end) {
                for (int64_t o = begin; o < end; o++) pick((const T *)from + o * size, at, n, (T *)to + o * n);
            }, 1);
        });
    } else {
        single = false;
    }
    if (!single)
        parallel_for(outer * n, 4 * PARALLEL_FROM / inner + 1, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; i++)
                std::memcpy(to + i * inner, from + (i / n * size + at[i % n]) * inner, inner);
        });
    Py_END_ALLOW_THREADS;
    return r;
}

// index_select(x, index, dim)
static PyObject *index_select(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    bool wide;
    if (names || n != 3 || !read_int(args[2], dim) || !is_movable(args[0])) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]);
    if (PyArray_NDIM(index) > 1 || !is_index(index, wide) || dim < 0 || dim >= rank(x)) return misfit();
    if (!within(index, extent(x, int(dim)))) return declined();
    if (PyArray_SIZE(x) > SMALL || PyArray_SIZE(index) > SMALL) {
        bool fits = PyArray_NDIM(x) && wide && PyArray_IS_C_CONTIGUOUS(x) && PyArray_IS_C_CONTIGUOUS(index);
        return fits ? as_object(select_slices(x, index, int(dim))) : declined();
    }
    if (!PyArray_NDIM(x)) return PyArray_SIZE(index) == 1 ? as_object(copied(x)) : declined();
    Slices slices;
    PyArrayObject *r = slices.read(x, index, dim) ? take(slices.target, slices.places, x) : nullptr;
    return r || PyErr_Occurred() ? as_object(r) : declined();
}

static bool read_element(PyObject *value, PyArrayObject *like, char *to);

// index_fill(x, index, dim, value): a number, or an array of one element.
static PyObject *index_fill(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    bool wide;
    alignas(16) char element[16];
    if (names || n != 4 || !read_int(args[2], dim) || !is_movable(args[0])) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]);
    if (PyArray_NDIM(index) > 1 || !is_index(index, wide) || !wide || dim < 0 || dim >= rank(x))
        return misfit();
    if (!PyArray_IS_C_CONTIGUOUS(x)) return declined();     // the copy lies as x does
    bool number = !PyArray_Check(args[3]);
    if (!number && PyArray_NDIM(array(args[3]))) return misfit();
    if (!number && PyArray_DESCR(array(args[3])) != PyArray_DESCR(x)) return declined();
    if (number && !read_element(args[3], x, element)) return declined();
    if (!within(index, extent(x, int(dim)), true)) return declined();
    PyArrayObject *r = to_update(x);
    if (!r) return nullptr;
    Slices slices;
    if (slices.read(r, index, dim)) {
        fill_places(slices.target, slices.places, number ? element : PyArray_BYTES(array(args[3])));
        return as_object(r);
    }
    Py_DECREF(r);
    return declined();
}

// ---- reductions ---------------------------------------------------------------------------------

enum Reduce { WRITE, SUM, PROD, MEAN, AMAX, AMIN, UNKNOWN };

static Reduce reduce_of(PyObject *name) {
    if (name == Py_None) return WRITE;
    static const char *known[] = {"", "sum", "prod", "mean", "amax", "amin"};
    for (int i = SUM; i < UNKNOWN; i++)
        if (PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, known[i]))
            return Reduce(i);
    return UNKNOWN;
}

template <class T>
static T neutral(Reduce reduce) {
    using Limits = std::numeric_limits<T>;
    if (reduce == PROD) return T(1);
    if (reduce == AMAX) return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    if (reduce == AMIN) return Limits::has_infinity ? Limits::infinity() : Limits::max();
    return T(0);
}

template <class T>
static void combine_one(Reduce reduce, T &to, T value) {
    switch (reduce) {
        case SUM:
        case MEAN: to += value; break;
        case PROD: to *= value; break;
        case AMAX: to = (value > to) | (value != value) ? value : to; break;
        case AMIN: to = (value < to) | (value != value) ? value : to; break;
        default: to = value;
    }
}

// Pairs of an element of the result and one of the source, in order: body(to, from).
struct Pairs {
    int nd = 0;
    npy_intp shape[NPY_MAXDIMS];                 // of the index
    npy_intp index[NPY_MAXDIMS], to[NPY_MAXDIMS], from[NPY_MAXDIMS];     // strides
    npy_intp step = 0;                           // of the result along the dimension
    const char *places;
    bool wide;

    template <class Body>
    void each(char *r, const char *source, Body body) const {
        npy_intp at_[NPY_MAXDIMS] = {};
        for (int d = 0; d < nd; d++)
            if (!shape[d]) return;
        const char *p = places;
        for (;;) {
            body(r + at(p, wide) * step, source);
            int d = nd - 1;
            for (; d >= 0; d--) {
                p += index[d], r += to[d], source += from[d];
                if (++at_[d] < shape[d]) break;
                p -= index[d] * shape[d], r -= to[d] * shape[d], source -= from[d] * shape[d];
                at_[d] = 0;
            }
            if (d < 0) return;
        }
    }
};

template <class T>
static void reduce_pairs(const Pairs &pairs, PyArrayObject *r, const char *source, Reduce reduce,
                         bool include_self) {
    char *to = PyArray_BYTES(r);
    if (!include_self)
        pairs.each(to, source, [&](char *p, const char *) { *(T *)p = neutral<T>(reduce); });
    pairs.each(to, source,
               [&](char *p, const char *q) { combine_one<T>(reduce, *(T *)p, *(const T *)q); });
    if (reduce != MEAN) return;
    std::vector<npy_intp> counts(PyArray_SIZE(r), include_self);
    pairs.each(to, source, [&](char *p, const char *) { counts[(T *)p - (T *)to]++; });
    for (npy_intp i = 0; i < PyArray_SIZE(r); i++)
        if (counts[i] > 1) ((T *)to)[i] /= T(counts[i]);
}

// Writes into `r`, a row-major copy; false: there is no loop for it.
static bool run_pairs(const Pairs &pairs, PyArrayObject *r, const char *source, Reduce reduce,
                      bool include_self) {
    if (reduce == WRITE)
        return with_size(PyArray_ITEMSIZE(r), [&](auto type) {
            using T = decltype(type);
            pairs.each(PyArray_BYTES(r), source,
                       [](char *p, const char *q) { std::memcpy(p, q, sizeof(T)); });
        });
    switch (dtype_of(PyArray_TYPE(r))) {
        case F4: reduce_pairs<float>(pairs, r, source, reduce, include_self); return true;
        case F8: reduce_pairs<double>(pairs, r, source, reduce, include_self); return true;
        case I8:
            if (reduce == MEAN) return false;
            reduce_pairs<int64_t>(pairs, r, source, reduce, include_self);
            return true;
        default: return false;
    }
}

// A number as an element of the type of `like`.
static bool read_element(PyObject *value, PyArrayObject *like, char *to) {
    if (PyBool_Check(value)) value = value == Py_True ? fast::one : fast::zero;
    DType type = dtype_of(PyArray_TYPE(like));
    if (type == I8 && PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        std::memcpy(to, &number, 8);
        return !overflow;
    }
    if (type < F2 && PyLong_CheckExact(value)) {  // the sizes of integers bound what is read of them
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        int width = 8 * int(size_of(type)) - (type >= I1);
        if (overflow || type == U8 || (type == B1 ? number >> 1 : number < 0 && type >= I1 ? ~number >> width : number >> width))
            return false;
        std::memcpy(to, &number, size_of(type));  // the least significant bytes come first
        return PY_LITTLE_ENDIAN;
    }
    if (type < F2 || !(PyFloat_CheckExact(value) || PyLong_CheckExact(value))) return false;
    if (PyLong_CheckExact(value)) {  // of more than 64 bits there are none
        int overflow;
        PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow) return false;
    }
    double number = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyLong_AsDouble(value);
    if (PyErr_Occurred()) return PyErr_Clear(), false;
    float narrow = float(number);
    if (type == F8 || type == C16) {
        double parts[] = {number, 0};
        std::memcpy(to, parts, size_of(type));
        return true;
    }
    if (!std::isinf(number) && std::isinf(narrow)) return false;
    if (type == F2 || type == BF) {
        uint16_t half = type == F2 ? Narrow<Half, float>::from(narrow).v : Narrow<BFloat, float>::from(narrow).v;
        std::memcpy(to, &half, 2);
        return std::fabs(number) <= (type == F2 ? 65504.0 : 3.38e38) || !std::isfinite(number);
    }
    float parts[] = {narrow, 0};
    std::memcpy(to, parts, size_of(type));
    return true;
}

// scatter(x, index, source, dim, reduce, include_self): source is an array or a number.
static PyObject *scatter(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    alignas(16) char element[16];
    if (names || n != 6 || !read_int(args[3], dim)) return declined();
    if (!is_movable(args[0]) || !is_movable(args[1])) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]);
    PyArrayObject *source = PyArray_Check(args[2]) ? array(args[2]) : nullptr;
    Reduce reduce = reduce_of(args[4]);
    int nd = rank(x);
    Pairs pairs;
    if (reduce == UNKNOWN) return misfit();
    if (source && (PyArray_DESCR(source) != PyArray_DESCR(x) || !is_plain(args[2]))) return misfit();
    if (PyArray_SIZE(index) && (!is_index(index, pairs.wide))) return misfit();
    if (!PyArray_SIZE(index)) return declined();
    if (rank(index) != nd || (source && rank(source) != nd)) return misfit();
    for (int d = 0; d < nd; d++) {
        if ((d != dim && extent(index, d) > extent(x, d)) ||
            (source && extent(index, d) > extent(source, d)))
            return misfit();
        pairs.shape[d] = extent(index, d), pairs.index[d] = stride(index, d);
        pairs.from[d] = source ? stride(source, d) : 0;
    }
    if (PyArray_SIZE(x) > SMALL || PyArray_SIZE(index) > SMALL ||
        (!source && !read_element(args[2], x, element)))
        return declined();
    pairs.nd = nd, pairs.places = PyArray_BYTES(index);
    PyArrayObject *r = to_update(x);
    if (!r) return nullptr;
    npy_intp size = extent(x, int(dim));
    for (int d = 0; d < nd; d++) pairs.to[d] = d == dim ? 0 : stride(r, d);
    bool right = true;  // are all places there?
    Pairs look = pairs;
    std::copy_n(pairs.index, nd, look.from);
    look.each(PyArray_BYTES(r), pairs.places, [&](char *, const char *p) {
        int64_t place = at(p, pairs.wide);
        right &= place >= 0 && place < size;
    });
    pairs.step = stride(r, int(dim));
    const char *from = source ? PyArray_BYTES(source) : element;
    if (right && run_pairs(pairs, r, from, reduce, args[5] == Py_True)) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// gather(x, index, dim)
static PyObject *gather(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    if (names || n < 3 || n > 4 || !read_int(args[2], dim) || !is_movable(args[0]) ||
        !PyArray_Check(args[1]))
        return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]);
    int nd = rank(x);
    Pairs pairs;
    if (!PyArray_SIZE(index)) return as_object(empty(x, PyArray_NDIM(index), PyArray_DIMS(index)));
    if (!is_index(index, pairs.wide) || rank(index) != nd || dim < 0 || dim >= nd) return misfit();
    for (int d = 0; d < nd; d++)
        if (d != dim && extent(index, d) > extent(x, d)) return misfit();
    if (PyArray_SIZE(index) > SMALL) return declined();
    PyArrayObject *r = empty(x, PyArray_NDIM(index), PyArray_DIMS(index));
    if (!r) return nullptr;
    pairs.nd = nd, pairs.places = PyArray_BYTES(index), pairs.step = 0;
    for (int d = 0; d < nd; d++) {
        pairs.shape[d] = extent(index, d), pairs.index[d] = stride(index, d);
        pairs.from[d] = stride(r, d), pairs.to[d] = 0;
    }
    bool right = true;
    npy_intp size = extent(x, int(dim));
    Pairs look = pairs;
    std::copy_n(pairs.index, nd, look.from);
    look.each(nullptr, pairs.places, [&](char *, const char *p) {
        int64_t place = at(p, pairs.wide);
        right &= place >= 0 && place < size;
    });
    for (int d = 0; d < nd; d++) pairs.to[d] = d == dim ? 0 : stride(x, d);
    pairs.step = stride(x, int(dim));
    bool known = right && with_size(PyArray_ITEMSIZE(x), [&](auto type) {
        using T = decltype(type);
        pairs.each(PyArray_BYTES(x), PyArray_BYTES(r), [](char *p, const char *q) {
            std::memcpy(const_cast<char *>(q), p, sizeof(T));
        });
    });
    if (known) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// index_reduce(x, index, source, dim, reduce, include_self)
static PyObject *index_reduce(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    if (names || n != 6 || !read_int(args[3], dim)) return declined();
    if (!is_movable(args[0]) || !is_movable(args[2]) || !PyArray_Check(args[1])) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]), *source = array(args[2]);
    Reduce reduce = reduce_of(args[4]);
    if (reduce == UNKNOWN || reduce == SUM || reduce == WRITE) return misfit();
    if (!combine(x, dim, index, source)) return misfit();
    bool number = !PyArray_NDIM(x);
    if (PyArray_SIZE(source) > SMALL || !within(index, number ? 1 : PyArray_DIM(x, int(dim))))
        return declined();
    PyArrayObject *r = to_update(x);
    if (!r) return nullptr;
    Pairs pairs;
    pairs.nd = PyArray_NDIM(x), pairs.places = PyArray_BYTES(index);
    is_index(index, pairs.wide);
    for (int d = 0; d < pairs.nd; d++) {
        pairs.shape[d] = PyArray_DIM(source, d), pairs.from[d] = PyArray_STRIDE(source, d);
        pairs.index[d] = d == dim && PyArray_NDIM(index) ? PyArray_STRIDE(index, 0) : 0;
        pairs.to[d] = d == dim ? 0 : PyArray_STRIDE(r, d);
    }
    pairs.step = number ? 0 : PyArray_STRIDE(r, int(dim));
    if (run_pairs(pairs, r, PyArray_BYTES(source), reduce, args[5] == Py_True)) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// ---- elements of the flattened array ------------------------------------------------------------

// take(x, index)
static PyObject *take_flat(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2 || !is_movable(args[0]) || !PyArray_Check(args[1])) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]);
    bool wide;
    if (!is_index(index, wide) || !wide) return misfit();
    npy_intp size = PyArray_SIZE(x), item = PyArray_ITEMSIZE(x), count = PyArray_SIZE(index);
    if (!PyArray_IS_C_CONTIGUOUS(x) || !PyArray_IS_C_CONTIGUOUS(index) || !within(index, size, true))
        return declined();
    PyArrayObject *r = empty(x, PyArray_NDIM(index), PyArray_DIMS(index));
    if (!r) return nullptr;
    const int64_t *p = (const int64_t *)PyArray_DATA(index);
    bool known = with_size(item, [&](auto type) {
        using T = decltype(type);
        const T *from = (const T *)PyArray_DATA(x);
        T *to = (T *)PyArray_DATA(r);
        for (npy_intp i = 0; i < count; i++) to[i] = from[p[i] < 0 ? p[i] + size : p[i]];
    });
    if (known) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// put(x, index, source, accumulate)
static PyObject *put_flat(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 4 || !is_movable(args[0]) || !is_movable(args[2]) || !PyArray_Check(args[1]))
        return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]), *source = array(args[2]);
    bool wide;
    if (!is_index(index, wide) || !wide || PyArray_DESCR(x) != PyArray_DESCR(source) ||
        PyArray_SIZE(index) != PyArray_SIZE(source))
        return misfit();
    npy_intp size = PyArray_SIZE(x), count = PyArray_SIZE(index);
    if (!PyArray_IS_C_CONTIGUOUS(source) || !PyArray_IS_C_CONTIGUOUS(index) ||
        !within(index, size, true))
        return declined();
    PyArrayObject *r = to_update(x);
    if (!r) return nullptr;
    const int64_t *p = (const int64_t *)PyArray_DATA(index);
    Pairs pairs;
    pairs.nd = 1, pairs.wide = true, pairs.shape[0] = count;
    pairs.index[0] = 8, pairs.to[0] = 0, pairs.from[0] = PyArray_ITEMSIZE(x);
    pairs.step = PyArray_ITEMSIZE(x);
    std::vector<int64_t> places(p, p + count);
    for (int64_t &place : places)
        if (place < 0) place += size;
    pairs.places = (const char *)places.data();
    Reduce reduce = args[3] == Py_True ? SUM : WRITE;
    if (run_pairs(pairs, r, PyArray_BYTES(source), reduce, true)) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// ---- masks --------------------------------------------------------------------------------------

// An array and a mask, both row-major in the shape that they broadcast to.
struct Masked {
    fast::Ref x, mask;
    npy_intp size = 0, count = 0;

    // 0: they do not broadcast, or it is no mask; -1: an error.
    int read(PyObject *array_, PyObject *mask_, bool copies) {
        PyArrayObject *a = array(array_), *m = array(mask_);
        int nd = std::max(PyArray_NDIM(a), PyArray_NDIM(m));
        npy_intp shape[NPY_MAXDIMS];
        if (PyArray_TYPE(m) != NPY_BOOL) return 0;
        for (int d = 0; d < nd; d++) {
            npy_intp p = at(a, nd, d), q = at(m, nd, d);
            if (p != q && p != 1 && q != 1) return 0;
            shape[d] = p == 1 ? q : p;
        }
        x.take(spread(a, nd, shape, copies)), mask.take(spread(m, nd, shape, false));
        if (!x || !mask) return -1;
        size = PyArray_SIZE(array(x.get()));
        for (npy_intp i = 0; i < size; i++) count += bits()[i] != 0;
        return 1;
    }
    const uint8_t *bits() const { return (const uint8_t *)PyArray_DATA(array(mask.get())); }
    template <class T>
    T *data() const { return (T *)PyArray_DATA(array(x.get())); }

private:
    static npy_intp at(PyArrayObject *a, int nd, int d) {
        d -= nd - PyArray_NDIM(a);
        return d < 0 ? 1 : PyArray_DIM(a, d);
    }
    static PyObject *spread(PyArrayObject *a, int nd, const npy_intp *shape, bool copies) {
        bool same = PyArray_NDIM(a) == nd && std::equal(shape, shape + nd, PyArray_DIMS(a));
        if (same && !copies && PyArray_IS_C_CONTIGUOUS(a)) return Py_INCREF(a), as_object(a);
        PyArrayObject *r = empty(a, nd, shape);
        if (!r) return nullptr;
        Range range;
        for (int d = 0, own = PyArray_NDIM(a) - nd; d < nd; d++, own++)
            range.add(shape[d], PyArray_STRIDE(r, d),
                      own < 0 || PyArray_DIM(a, own) != shape[d] ? 0 : PyArray_STRIDE(a, own));
        copy(range, PyArray_BYTES(r), PyArray_BYTES(a), PyArray_ITEMSIZE(a));
        return as_object(r);
    }
};

// masked_scatter(x, mask, source)
static PyObject *masked_scatter(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 3 || !is_movable(args[0]) || !is_movable(args[1]) || !is_movable(args[2]))
        return declined();
    PyArrayObject *source = array(args[2]);
    if (PyArray_TYPE(array(args[1])) != NPY_BOOL || PyArray_DESCR(array(args[0])) != PyArray_DESCR(source))
        return misfit();
    Masked both;
    int fits = both.read(args[0], args[1], true);
    if (fits < 0) return nullptr;
    if (!fits || both.count > PyArray_SIZE(source) || !PyArray_IS_C_CONTIGUOUS(source)) return declined();
    bool known = with_size(PyArray_ITEMSIZE(source), [&](auto type) {
        using T = decltype(type);
        const T *from = (const T *)PyArray_DATA(source);
        T *to = both.data<T>();
        for (npy_intp i = 0; i < both.size; i++)
            if (both.bits()[i]) to[i] = *from++;
    });
    return known ? both.x.release() : declined();
}

// masked_fill(x, mask, value)
static PyObject *masked_fill(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    alignas(16) char element[16];
    if (names || n != 3 || !is_movable(args[0]) || !is_movable(args[1])) return declined();
    PyArrayObject *x = array(args[0]);
    const char *value = element;
    if (PyArray_Check(args[2])) {
        if (PyArray_NDIM(array(args[2])) || PyArray_DESCR(array(args[2])) != PyArray_DESCR(x)) return declined();
        value = PyArray_BYTES(array(args[2]));
    } else if (!read_element(args[2], x, element)) {
        return declined();
    }
    Masked both;
    if (PyArray_SIZE(x) > SMALL) return declined();
    int fits = both.read(args[0], args[1], true);
    if (fits <= 0) return fits ? nullptr : declined();
    bool known = with_size(PyArray_ITEMSIZE(x), [&](auto type) {
        using T = decltype(type);
        T one;
        std::memcpy(&one, value, sizeof(T));
        T *to = both.data<T>();
        for (npy_intp i = 0; i < both.size; i++)
            if (both.bits()[i]) to[i] = one;
    });
    return known ? both.x.release() : declined();
}

// masked_select(x, mask)
static PyObject *masked_select(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2 || !is_movable(args[0]) || !is_movable(args[1])) return declined();
    if (PyArray_TYPE(array(args[1])) != NPY_BOOL) return misfit();
    Masked both;
    int fits = both.read(args[0], args[1], false);
    if (fits <= 0) return fits ? nullptr : misfit();
    PyArrayObject *r = empty(array(args[0]), 1, &both.count);
    if (!r) return nullptr;
    bool known = with_size(PyArray_ITEMSIZE(r), [&](auto type) {
        using T = decltype(type);
        const T *from = both.data<T>();
        T *to = (T *)PyArray_DATA(r);
        for (npy_intp i = 0; i < both.size; i++)
            if (both.bits()[i]) *to++ = from[i];
    });
    if (known) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// filled(x, value): an array like x with that number everywhere.
static PyObject *filled(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    alignas(16) char element[16];
    if (names || n != 2 || !is_movable(args[0]) || !PyArray_IS_C_CONTIGUOUS(array(args[0])))
        return declined();
    PyArrayObject *x = array(args[0]);
    if (!read_element(args[1], x, element)) return declined();
    PyArrayObject *r = to_overwrite(x);
    if (!r) return nullptr;
    Range range;
    for (int d = 0; d < PyArray_NDIM(r); d++) range.add(PyArray_DIM(r, d), PyArray_STRIDE(r, d), 0);
    fill(range, PyArray_BYTES(r), element, PyArray_ITEMSIZE(r));
    return as_object(r);
}

// ---- places of what is not zero, and of what is repeated -----------------------------------------

template <class T>
static PyObject *nonzero_of(PyArrayObject *x) {
    const T *p = (const T *)PyArray_DATA(x);
    npy_intp size = PyArray_SIZE(x), nd = PyArray_NDIM(x), count = 0, shape[2], at[NPY_MAXDIMS] = {};
    for (npy_intp i = 0; i < size; i++) count += p[i] != T(0);
    shape[0] = nd, shape[1] = count;
    PyObject *found = PyArray_SimpleNew(2, shape, NPY_INT64);
    if (!found) return nullptr;
    int64_t *to = (int64_t *)PyArray_DATA((PyArrayObject *)found);
    for (npy_intp i = 0; i < size; i++) {
        if (p[i] != T(0)) {
            for (npy_intp d = 0; d < nd; d++) to[d * count] = at[d];
            to++;
        }
        for (npy_intp d = nd - 1; d >= 0; d--) {
            if (++at[d] < PyArray_DIM(x, int(d))) break;
            at[d] = 0;
        }
    }
    PyArray_STRIDES((PyArrayObject *)found)[1] = sizeof(int64_t);   // also where nothing is found
    PyObject *result = PyArray_Transpose((PyArrayObject *)found, nullptr);
    Py_DECREF(found);
    return result;
}

static PyObject *nonzero(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 1 || !is_movable(args[0])) return declined();
    PyArrayObject *x = array(args[0]);
    if (!PyArray_IS_C_CONTIGUOUS(x) || PyArray_SIZE(x) > SMALL) return declined();
    switch (dtype_of(PyArray_TYPE(x))) {
        case B1:
        case U1: return nonzero_of<uint8_t>(x);
        case I4: return nonzero_of<int32_t>(x);
        case I8: return nonzero_of<int64_t>(x);
        case F4: return nonzero_of<float>(x);
        case F8: return nonzero_of<double>(x);
        default: return declined();
    }
}

// repeated_places(counts): the number of each element, as often as it says.
static PyObject *repeated_places(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 1 || !is_movable(args[0])) return declined();
    PyArrayObject *counts = array(args[0]);
    bool wide;
    if (!is_index(counts, wide) || PyArray_NDIM(counts) != 1) return declined();
    npy_intp total = 0, step = PyArray_STRIDE(counts, 0);
    const char *p = PyArray_BYTES(counts);
    for (npy_intp i = 0; i < PyArray_SIZE(counts); i++) {
        int64_t count = at(p + i * step, wide);
        if (count < 0) return declined();
        total += count;
    }
    PyObject *r = PyArray_SimpleNew(1, &total, NPY_INT64);
    int64_t *to = r ? (int64_t *)PyArray_DATA((PyArrayObject *)r) : nullptr;
    for (npy_intp i = 0; r && i < PyArray_SIZE(counts); i++)
        to = std::fill_n(to, at(p + i * step, wide), int64_t(i));
    return r;
}

}  // namespace moving

int register_slices(PyObject *module) {
    using namespace moving;
    PyObject *bases = PyTuple_Pack(2, PyExc_ValueError, PyExc_IndexError);
    Misfit = bases ? PyErr_NewException("flambeau.kernels._native.Misfit", bases, nullptr) : nullptr;
    Py_XDECREF(bases);
    if (!Misfit) return -1;
    if (PyModule_AddObjectRef(module, "Misfit", Misfit)) return -1;
    return make_functions(module, {{"index_add", index_add}, {"index_copy", index_copy},
                                   {"index_select", index_select}, {"index_fill", index_fill},
                                   {"masked_fill", masked_fill}, {"masked_select", masked_select},
                                   {"filled", filled}, {"scatter", scatter}, {"gather", gather},
                                   {"index_reduce", index_reduce}, {"take", take_flat},
                                   {"put", put_flat}, {"masked_scatter", masked_scatter},
                                   {"nonzero", nonzero}, {"repeated_places", repeated_places}});
}
