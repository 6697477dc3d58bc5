// The few ops whose Python arguments cost more than their work: view and reshape by integers, cat;
// and reading nested lists of numbers.
#include "tensors.h"

#include <type_traits>

namespace fast {

// The shape that integers, or one tuple or list of them, ask of `size` elements (one may be -1).
// The number of dimensions; -1: not this case.
static int read_shape(PyObject *const *items, Py_ssize_t n, npy_intp *shape) {
    if (n == 1 && (PyTuple_Check(items[0]) || PyList_CheckExact(items[0]))) {
        n = PySequence_Fast_GET_SIZE(items[0]);
        items = PySequence_Fast_ITEMS(items[0]);
    }
    if (n > NPY_MAXDIMS) return -1;
    for (Py_ssize_t d = 0; d < n; d++) {
        int overflow;
        if (!PyLong_CheckExact(items[d])) return -1;
        long long length = PyLong_AsLongLongAndOverflow(items[d], &overflow);
        if (overflow || length < -1 || length > (1LL << 40)) return -1;
        shape[d] = npy_intp(length);
    }
    return int(n);
}

// Replaces a -1. False: the shape does not fit.
static bool infer(npy_intp *shape, int nd, npy_intp size) {
    npy_intp known = 1;
    int open = -1;
    for (int d = 0; d < nd; d++) {
        if (shape[d] == -1) {
            if (open >= 0) return false;
            open = d;
        } else {
            if (shape[d] && known > size / shape[d]) return false;
            known *= shape[d];
        }
    }
    if (open < 0) return known == size;
    if (known == 0 || size % known) return false;
    shape[open] = size / known;
    return true;
}

static PyObject *shape_tuple(const npy_intp *shape, int nd) {
    PyObject *tuple = PyTuple_New(nd);
    for (int d = 0; tuple && d < nd; d++) {
        PyObject *n = PyLong_FromSsize_t(shape[d]);
        if (!n) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, d, n);
    }
    return tuple;
}

PyObject *call_reshape(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (names || n < 2 || watched() || !is_plain_tensor(args[0]))
        return fall_back(f, args, nargsf, names);
    PyArrayObject *x = (PyArrayObject *)slot(args[0], core.array);
    npy_intp shape[NPY_MAXDIMS];
    int nd = -1;
    if (x && PyArray_CheckExact(x) && PyArray_IS_C_CONTIGUOUS(x))
        nd = read_shape(args + 1, n - 1, shape);
    if (nd < 0 || !infer(shape, nd, PyArray_SIZE(x))) return fall_back(f, args, nargsf, names);
    Ref sizes(shape_tuple(shape, nd));
    if (!sizes) return nullptr;
    Ref canonical(PyTuple_Pack(2, args[0], sizes.get()));
    if (!canonical) return nullptr;
    Py_INCREF(PyArray_DESCR(x));
    Ref array(PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(x), nd, shape, nullptr,
                                   PyArray_BYTES(x), PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE,
                                   nullptr));
    if (!array) return nullptr;
    Py_INCREF(x);
    if (PyArray_SetBaseObject((PyArrayObject *)array.get(), (PyObject *)x) < 0) return nullptr;
    return finish((Callable *)f->kernel, &PyTuple_GET_ITEM(canonical.get(), 0), 2, array.release());
}

// The arrays one after another; null without an error: not of one type, or not contiguous, or they
// do not fit.
static PyObject *join(PyObject *tensors, long dim, int *axis) {
    Py_ssize_t n = PyTuple_GET_SIZE(tensors);
    PyArrayObject *first = nullptr;
    npy_intp shape[NPY_MAXDIMS], total = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *tensor = PyTuple_GET_ITEM(tensors, i);
        PyArrayObject *x = is_plain_tensor(tensor) ? (PyArrayObject *)slot(tensor, core.array)
                                                   : nullptr;
        if (!x || !is_plain((PyObject *)x) || !PyArray_IS_C_CONTIGUOUS(x) ||
            dtype_of(PyArray_TYPE(x)) == NONE)
            return nullptr;
        if (!first) {
            first = x;
            if (dim < 0) dim += PyArray_NDIM(x);
            if (dim < 0 || dim >= PyArray_NDIM(x)) return nullptr;
        }
        if (PyArray_NDIM(x) != PyArray_NDIM(first) || PyArray_DESCR(x) != PyArray_DESCR(first))
            return nullptr;
        for (int d = 0; d < PyArray_NDIM(x); d++)
            if (d != dim && PyArray_DIM(x, d) != PyArray_DIM(first, d)) return nullptr;
        total += PyArray_DIM(x, int(dim));
    }
    if (!first) return nullptr;
    int nd = PyArray_NDIM(first);
    npy_intp rows = 1, inner = PyArray_ITEMSIZE(first);
    for (int d = 0; d < nd; d++) {
        shape[d] = d == dim ? total : PyArray_DIM(first, d);
        if (d < dim) rows *= shape[d];
        if (d > dim) inner *= shape[d];
    }
    if (rows * total * inner > 1 << 20) return nullptr;  // NumPy lets other threads run meanwhile
    Py_INCREF(PyArray_DESCR(first));
    PyObject *out = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(first), nd, shape, nullptr,
                                         nullptr, 0, nullptr);
    if (!out) return nullptr;
    char *to = PyArray_BYTES((PyArrayObject *)out);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyArrayObject *x = (PyArrayObject *)slot(PyTuple_GET_ITEM(tensors, i), core.array);
        npy_intp row = PyArray_DIM(x, int(dim)) * inner;
        const char *from = PyArray_BYTES(x);
        for (npy_intp r = 0; r < rows; r++) std::memcpy(to + r * total * inner, from + r * row, row);
        to += row;
    }
    *axis = int(dim);
    return out;
}

PyObject *call_cat(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
    bool fits = !watched() && (n == 1 || (n == 2 && !named)) && named <= 1 &&
                (PyList_CheckExact(args[0]) || PyTuple_CheckExact(args[0]));
    if (fits && named)
        fits = !PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "dim");
    long dim = 0;
    if (fits && n + named == 2) {
        int overflow = 0;
        fits = PyLong_CheckExact(args[1]);
        if (fits) dim = PyLong_AsLongAndOverflow(args[1], &overflow);
        fits = fits && !overflow;
    }
    if (!fits) return call_general(self, args, nargsf, names);
    Ref tensors(PySequence_Tuple(args[0]));
    if (!tensors) return nullptr;
    int axis;
    Ref array(join(tensors.get(), dim, &axis));
    if (!array) return PyErr_Occurred() ? nullptr : call_general(self, args, nargsf, names);
    Ref at(PyLong_FromLong(axis));
    if (!at) return nullptr;
    Ref canonical(PyTuple_Pack(2, tensors.get(), at.get()));
    if (!canonical) return nullptr;
    return finish(f, &PyTuple_GET_ITEM(canonical.get(), 0), PyTuple_GET_SIZE(canonical.get()),
                  array.release());
}

// ---- nested lists -------------------------------------------------------------------------------

static bool is_list(PyObject *x) { return PyList_CheckExact(x) || PyTuple_CheckExact(x); }

// What the numbers of `data` are; 0: not all ints and floats, or not of this shape.
enum Numbers : int { OTHER = 0, INTS = 1, REALS = 2 };

static int look(PyObject *data, const npy_intp *shape, int nd) {
    if (PySequence_Fast_GET_SIZE(data) != shape[0]) return OTHER;
    PyObject **items = PySequence_Fast_ITEMS(data);
    int found = INTS;
    for (npy_intp i = 0; i < shape[0]; i++) {
        int kind = nd > 1 ? (is_list(items[i]) ? look(items[i], shape + 1, nd - 1) : OTHER)
                   : PyFloat_CheckExact(items[i]) ? REALS
                   : PyLong_CheckExact(items[i])  ? INTS
                                                  : OTHER;
        if (!kind) return OTHER;
        if (kind > found) found = kind;
    }
    return found;
}

template <class T>
static bool fill(PyObject *data, int nd, T *&to) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(data);
    PyObject **items = PySequence_Fast_ITEMS(data);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (nd > 1) {
            if (!fill(items[i], nd - 1, to)) return false;
        } else if constexpr (std::is_floating_point_v<T>) {
            double value = PyFloat_CheckExact(items[i]) ? PyFloat_AS_DOUBLE(items[i])
                                                        : PyLong_AsDouble(items[i]);
            *to++ = T(value);
        } else {
            *to++ = PyLong_AsLongLong(items[i]);
        }
        if (PyErr_Occurred()) return false;
    }
    return true;
}

// read_numbers(data, dtype): nested lists of floats (and ints) as an array of `dtype`, float32 or
// float64, or of ints as int64; None where NumPy has to look.
PyObject *read_numbers(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyArray_DescrCheck(args[1]) || !is_list(args[0])) Py_RETURN_NONE;
    npy_intp shape[8];
    int nd = 0;
    for (PyObject *data = args[0]; is_list(data); data = PySequence_Fast_GET_ITEM(data, 0)) {
        if (nd == 8 || !PySequence_Fast_GET_SIZE(data)) Py_RETURN_NONE;
        shape[nd++] = PySequence_Fast_GET_SIZE(data);
    }
    int kind = look(args[0], shape, nd), type = ((PyArray_Descr *)args[1])->type_num;
    if (kind == OTHER || (kind == REALS && type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    PyArrayObject *array =
        (PyArrayObject *)PyArray_SimpleNew(nd, shape, kind == INTS ? NPY_INT64 : type);
    if (!array) return nullptr;
    void *to = PyArray_DATA(array);
    bool filled = kind == INTS          ? fill(args[0], nd, *(int64_t **)&to)
                  : type == NPY_FLOAT ? fill(args[0], nd, *(float **)&to)
                                      : fill(args[0], nd, *(double **)&to);
    if (filled) return (PyObject *)array;
    PyErr_Clear();  // a number that does not fit: the caller says so
    Py_DECREF(array);
    Py_RETURN_NONE;
}

}  // namespace fast
