// Whole slices, and single elements, read and written by index: index_add, scatter, take and their
// kin. A call that is wrong raises Misfit, which leaves it to the twin of the call; what is right but
// has no loop here is declined.
#include "places.h"

#include "../kernel.h"

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

// Do the slices of `source` along `dim` take the places in `x` that `index` names?
static bool combine(PyArrayObject *x, npy_intp dim, PyArrayObject *index, PyArrayObject *source) {
    int nd = PyArray_NDIM(x);
    bool wide;
    if (PyArray_NDIM(index) > 1 || !is_index(index, wide) || PyArray_DESCR(x) != PyArray_DESCR(source))
        return false;
    if (!nd) return !PyArray_NDIM(source) && PyArray_SIZE(index) == 1;
    if (PyArray_NDIM(source) != nd || dim < 0 || dim >= nd) return false;
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(source, d) != (d == dim ? PyArray_SIZE(index) : PyArray_DIM(x, d))) return false;
    return true;
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

static Target target_of(PyArrayObject *x) {
    return {PyArray_NDIM(x), PyArray_DIMS(x), PyArray_STRIDES(x), PyArray_BYTES(x),
            PyArray_ITEMSIZE(x)};
}

// index_add(x, index, source, dim, alpha)
static PyObject *index_add(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    if (names || n != 5 || !read_int(args[3], dim)) return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]), *source = array(args[2]);
    if (!is_movable(args[0]) || !is_movable(args[2]) || !combine(x, dim, index, source)) return misfit();
    if (!PyLong_CheckExact(args[4]) || PyLong_AsLong(args[4]) != 1 || PyArray_SIZE(x) > SMALL ||
        PyArray_SIZE(source) > SMALL || PyErr_Occurred() || !PyArray_NDIM(x) ||
        !within(index, PyArray_DIM(x, int(dim))))
        return PyErr_Clear(), declined();
    PyArrayObject *r = copied(x);
    if (!r) return nullptr;
    Target target = target_of(r);
    Places places;
    int where = int(dim);
    PyObject *indices[] = {args[1]};
    if (!PyArray_NDIM(index)) return Py_DECREF(r), declined();
    if (places.read(target, indices, 1, &where) && put(target, places, source, true))
        return as_object(r);
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
    DType type = dtype_of(PyArray_TYPE(like));
    if (type == I8 && PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        std::memcpy(to, &number, 8);
        return !overflow;
    }
    if ((type != F4 && type != F8) || !(PyFloat_CheckExact(value) || PyLong_CheckExact(value)))
        return false;
    double number = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyLong_AsDouble(value);
    if (PyErr_Occurred()) return PyErr_Clear(), false;
    float narrow = float(number);
    if (type == F8) std::memcpy(to, &number, 8);
    else std::memcpy(to, &narrow, 4);
    return type == F8 || std::isinf(number) || !std::isinf(narrow);
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
    int nd = PyArray_NDIM(x);
    Pairs pairs;
    if (reduce == UNKNOWN) return misfit();
    if (source && (PyArray_DESCR(source) != PyArray_DESCR(x) || !is_plain(args[2]))) return misfit();
    if (PyArray_SIZE(index) && (!is_index(index, pairs.wide))) return misfit();
    if (!PyArray_SIZE(index) || !nd || PyArray_NDIM(index) != nd ||
        (source && PyArray_NDIM(source) != nd))
        return nd && PyArray_SIZE(index) && PyArray_NDIM(index) ? misfit() : declined();
    for (int d = 0; d < nd; d++) {
        if ((d != dim && PyArray_DIM(index, d) > PyArray_DIM(x, d)) ||
            (source && PyArray_DIM(index, d) > PyArray_DIM(source, d)))
            return misfit();
        pairs.shape[d] = PyArray_DIM(index, d), pairs.index[d] = PyArray_STRIDE(index, d);
        pairs.from[d] = source ? PyArray_STRIDE(source, d) : 0;
    }
    if (PyArray_SIZE(x) > SMALL || PyArray_SIZE(index) > SMALL ||
        (!source && !read_element(args[2], x, element)))
        return declined();
    pairs.nd = nd, pairs.places = PyArray_BYTES(index);
    PyArrayObject *r = copied(x);
    if (!r) return nullptr;
    npy_intp size = PyArray_DIM(x, int(dim));
    for (int d = 0; d < nd; d++) pairs.to[d] = d == dim ? 0 : PyArray_STRIDE(r, d);
    bool right = true;  // are all places there?
    Pairs look = pairs;
    std::copy_n(pairs.index, nd, look.from);
    look.each(PyArray_BYTES(r), pairs.places, [&](char *, const char *p) {
        int64_t place = at(p, pairs.wide);
        right &= place >= 0 && place < size;
    });
    pairs.step = PyArray_STRIDE(r, int(dim));
    const char *from = source ? PyArray_BYTES(source) : element;
    if (right && run_pairs(pairs, r, from, reduce, args[5] == Py_True)) return as_object(r);
    Py_DECREF(r);
    return declined();
}

// gather(x, index, dim)
static PyObject *gather(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    npy_intp dim;
    if (names || n != 3 || !read_int(args[2], dim) || !is_movable(args[0]) || !is_movable(args[1]))
        return declined();
    PyArrayObject *x = array(args[0]), *index = array(args[1]);
    int nd = PyArray_NDIM(x);
    Pairs pairs;
    if (!PyArray_SIZE(index)) return declined();
    if (!is_index(index, pairs.wide)) return misfit();
    if (!nd || !PyArray_NDIM(index)) return std::max(nd, 1) == std::max(PyArray_NDIM(index), 1)
                                                ? declined() : misfit();
    if (PyArray_NDIM(index) != nd || dim < 0 || dim >= nd) return misfit();
    for (int d = 0; d < nd; d++)
        if (d != dim && PyArray_DIM(index, d) > PyArray_DIM(x, d)) return misfit();
    if (PyArray_SIZE(index) > SMALL) return declined();
    PyArrayObject *r = empty(x, nd, PyArray_DIMS(index));
    if (!r) return nullptr;
    pairs.nd = nd, pairs.places = PyArray_BYTES(index), pairs.step = 0;
    for (int d = 0; d < nd; d++) {
        pairs.shape[d] = PyArray_DIM(index, d), pairs.index[d] = PyArray_STRIDE(index, d);
        pairs.from[d] = PyArray_STRIDE(r, d), pairs.to[d] = 0;
    }
    bool right = true;
    npy_intp size = PyArray_DIM(x, int(dim));
    Pairs look = pairs;
    std::copy_n(pairs.index, nd, look.from);
    look.each(nullptr, pairs.places, [&](char *, const char *p) {
        int64_t place = at(p, pairs.wide);
        right &= place >= 0 && place < size;
    });
    for (int d = 0; d < nd; d++) pairs.to[d] = d == dim ? 0 : PyArray_STRIDE(x, d);
    pairs.step = PyArray_STRIDE(x, int(dim));
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
    PyArrayObject *r = copied(x);
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
    PyArrayObject *r = copied(x);
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

// masked_scatter(x, mask, source)
static PyObject *masked_scatter(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 3 || !is_movable(args[0]) || !is_movable(args[1]) || !is_movable(args[2]))
        return declined();
    PyArrayObject *x = array(args[0]), *mask = array(args[1]), *source = array(args[2]);
    if (PyArray_TYPE(mask) != NPY_BOOL || PyArray_DESCR(x) != PyArray_DESCR(source)) return misfit();
    int nd = PyArray_NDIM(x);
    if (PyArray_NDIM(mask) != nd || !PyArray_IS_C_CONTIGUOUS(mask) || !PyArray_IS_C_CONTIGUOUS(source) ||
        !std::equal(PyArray_DIMS(x), PyArray_DIMS(x) + nd, PyArray_DIMS(mask)))
        return declined();
    const uint8_t *m = (const uint8_t *)PyArray_DATA(mask);
    npy_intp size = PyArray_SIZE(x), count = 0;
    for (npy_intp i = 0; i < size; i++) count += m[i] != 0;
    if (count > PyArray_SIZE(source)) return declined();
    PyArrayObject *r = copied(x);
    if (!r) return nullptr;
    bool known = with_size(PyArray_ITEMSIZE(x), [&](auto type) {
        using T = decltype(type);
        const T *from = (const T *)PyArray_DATA(source);
        T *to = (T *)PyArray_DATA(r);
        for (npy_intp i = 0; i < size; i++)
            if (m[i]) to[i] = *from++;
    });
    if (known) return as_object(r);
    Py_DECREF(r);
    return declined();
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
    return PyModule_AddObjectRef(module, "Misfit", Misfit) ||
                   make_function(module, "index_add", index_add) ||
                   make_function(module, "scatter", scatter) || make_function(module, "gather", gather) ||
                   make_function(module, "index_reduce", index_reduce) ||
                   make_function(module, "take", take_flat) || make_function(module, "put", put_flat) ||
                   make_function(module, "masked_scatter", masked_scatter) ||
                   make_function(module, "nonzero", nonzero) ||
                   make_function(module, "repeated_places", repeated_places)
               ? -1
               : 0;
}
