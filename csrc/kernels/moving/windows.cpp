// Windows on the memory under an array, of any extents, strides and offset; writes to them, and what
// their derivatives move. All in elements.
#include "arrays.h"
#include "kernels/moving/strided.h"

#include "kernels/pointwise/kernel.h"

#include <algorithm>
#include <vector>

namespace moving {

// Where the elements of a window lie in a row of memory.
struct Window {
    int nd = 0;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], offset = 0;

    bool is_empty() const {
        for (int d = 0; d < nd; d++)
            if (!shape[d]) return true;
        return false;
    }
    npy_intp size() const {
        npy_intp n = 1;
        for (int d = 0; d < nd; d++) n *= shape[d];
        return n;
    }
    // The place after the last element.
    npy_intp end() const {
        npy_intp last = offset;
        for (int d = 0; d < nd; d++) last += (shape[d] - 1) * strides[d];
        return is_empty() ? 0 : last + 1;
    }
    // The least and the greatest place.
    void bounds(npy_intp &low, npy_intp &high) const {
        low = high = offset;
        for (int d = 0; d < nd; d++)
            (strides[d] < 0 ? low : high) += (shape[d] - 1) * strides[d];
    }
    // body(place) for each element, in order.
    template <class Body>
    void each(Body body) const {
        if (is_empty()) return;
        npy_intp at[NPY_MAXDIMS] = {}, place = offset;
        for (;;) {
            body(place);
            int d = nd - 1;
            for (; d >= 0; d--) {
                place += strides[d];
                if (++at[d] < shape[d]) break;
                place -= strides[d] * shape[d];
                at[d] = 0;
            }
            if (d < 0) return;
        }
    }
};

// The window that an array is of its memory, with the strides that PyTorch counts; false: it lies in
// memory that NumPy has not made.
static bool window_of(PyArrayObject *x, PyArrayObject *root, Window &w) {
    npy_intp item = PyArray_ITEMSIZE(x), after = 1;
    if (PyArray_BASE(root) || !item) return false;
    settle(x);
    w.nd = PyArray_NDIM(x);
    for (int d = w.nd - 1; d >= 0; d--) {
        w.shape[d] = PyArray_DIM(x, d), w.strides[d] = PyArray_STRIDE(x, d) / item;
        if (w.shape[d] == 1 && !w.strides[d]) w.strides[d] = after;
        after = w.shape[d] * w.strides[d];
    }
    w.offset = (PyArray_BYTES(x) - PyArray_BYTES(root)) / item;
    return true;
}

// Of a call: size, stride and an offset or None, which leaves `offset` as it is.
static bool read_window(PyObject *const *args, Window &w) {
    w.nd = read_ints(args[0], w.shape);
    if (w.nd < 0 || read_ints(args[1], w.strides) != w.nd) return false;
    if (args[2] != Py_None) {
        w.offset = PyLong_Check(args[2]) ? PyLong_AsSsize_t(args[2]) : -1;
        if (w.offset == -1 && PyErr_Occurred()) PyErr_Clear();
    }
    for (int d = 0; d < w.nd; d++)
        if (w.shape[d] < 0 || w.strides[d] < 0) return false;
    return true;
}

static bool read_geometry(PyObject *tuple, Window &w) {
    return PyTuple_CheckExact(tuple) && PyTuple_GET_SIZE(tuple) == 3 &&
           read_window(&PyTuple_GET_ITEM(tuple, 0), w);
}

static PyObject *tuple_of(const npy_intp *values, int n) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, PyLong_FromSsize_t(values[i]));
    return tuple;
}

PyObject *geometry_of(PyArrayObject *x) {
    Window w;
    if (!window_of(x, root_of(x), w)) return nullptr;
    return Py_BuildValue("NNn", tuple_of(w.shape, w.nd), tuple_of(w.strides, w.nd), w.offset);
}

// geometry(x): extents, strides and offset in the memory that it lies in.
static PyObject *geometry(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 1 || !PyArray_CheckExact(args[0])) return declined();
    PyObject *found = geometry_of((PyArrayObject *)args[0]);
    return found || PyErr_Occurred() ? found : declined();
}

// as_strided(x, size, stride, offset): a view of the memory of x.
static PyObject *as_strided(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Window own, w;
    if (names || n != 4 || !PyArray_CheckExact(args[0])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0], *root = root_of(x);
    if (!window_of(x, root, own)) return declined();
    w.offset = own.offset;
    if (!read_window(args + 1, w)) return misfit();
    npy_intp item = PyArray_ITEMSIZE(x);
    if (w.offset < 0 || (w.is_empty() ? w.offset : w.end()) * item > PyArray_NBYTES(root)) return declined();
    for (int d = 0; d < w.nd; d++) w.strides[d] *= item;
    Py_INCREF(PyArray_DESCR(x));
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(x), w.nd, w.shape, w.strides,
                                          PyArray_BYTES(root) + w.offset * item,
                                          PyArray_FLAGS(x) & NPY_ARRAY_WRITEABLE, nullptr);
    if (!view) return nullptr;
    Py_INCREF(x);
    if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)x) < 0) Py_CLEAR(view);
    return view;
}

static void write(const Window &w, char *memory, PyArrayObject *from) {
    npy_intp item = PyArray_ITEMSIZE(from);
    Range range;
    for (int d = 0; d < w.nd; d++) range.add(w.shape[d], w.strides[d] * item, PyArray_STRIDE(from, d));
    copy(range, memory + w.offset * item, PyArray_BYTES(from), item);
}

// as_strided_scatter(x, src, size, stride, offset): a copy of x in memory that is laid out as x's is,
// with src where the window lies.
static PyObject *as_strided_scatter(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Window own, w;
    if (names || n != 5 || !is_movable(args[0]) || !is_movable(args[1])) return declined();
    PyArrayObject *x = (PyArrayObject *)args[0], *src = (PyArrayObject *)args[1], *root = root_of(x);
    if (!window_of(x, root, own)) return declined();
    w.offset = own.offset;
    if (!read_window(args + 2, w) || PyArray_DESCR(x) != PyArray_DESCR(src) ||
        PyArray_NDIM(src) != w.nd || !std::equal(w.shape, w.shape + w.nd, PyArray_DIMS(src)))
        return misfit();
    npy_intp item = PyArray_ITEMSIZE(x), extent = std::max({own.end(), w.end(), npy_intp(1)});
    if (w.offset < 0 || (w.is_empty() ? w.offset : w.end()) * item > PyArray_NBYTES(root))
        return declined();
    PyArrayObject *memory = empty(x, 1, &extent);
    if (!memory) return nullptr;
    write(own, PyArray_BYTES(memory), x);
    write(w, PyArray_BYTES(memory), src);
    npy_intp strides[NPY_MAXDIMS];
    for (int d = 0; d < own.nd; d++) strides[d] = own.strides[d] * item;
    Py_INCREF(PyArray_DESCR(x));
    PyObject *r = PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(x), own.nd, own.shape, strides,
        PyArray_BYTES(memory) + (own.is_empty() ? 0 : own.offset) * item, NPY_ARRAY_WRITEABLE, nullptr);
    if (!r) return Py_DECREF(memory), nullptr;
    if (PyArray_SetBaseObject((PyArrayObject *)r, (PyObject *)memory) < 0) Py_CLEAR(r);
    return r;
}

// The elements of `x`, which lie as `source`, added up in memory and read as `target`.
template <class T>
static void move(PyArrayObject *x, PyArrayObject *r, const Window &source, const Window &target,
                 int shared, npy_intp low, npy_intp length) {
    std::vector<T> memory(length, T(0));
    std::vector<npy_intp> counts(shared ? length : 0);
    const T *from = (const T *)PyArray_DATA(x);
    T *to = (T *)PyArray_DATA(r);
    if (shared) (shared == 1 ? source : target).each([&](npy_intp place) { counts[place - low]++; });
    source.each([&](npy_intp place) {
        memory[place - low] += shared == 1 ? *from / T(counts[place - low]) : *from;
        from++;
    });
    target.each([&](npy_intp place) {
        T value = memory[place - low];
        *to++ = shared == 2 ? value / T(counts[place - low]) : value;
    });
}

// by_memory(x, source, target, shared): `shared` is one of the two geometries, whose elements that
// are one in memory get equal parts, or None.
static PyObject *by_memory(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Window source, target;
    if (names || n != 4 || !is_movable(args[0]) || !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)args[0]))
        return declined();
    PyArrayObject *x = (PyArrayObject *)args[0];
    DType type = dtype_of(PyArray_TYPE(x));
    if ((type != F4 && type != F8) || !read_geometry(args[1], source) || !read_geometry(args[2], target) ||
        source.size() != PyArray_SIZE(x))
        return declined();
    int shared = 0;
    if (args[3] != Py_None) {
        int same = PyObject_RichCompareBool(args[3], args[1], Py_EQ);
        if (same < 0) return nullptr;
        shared = same ? 1 : 2;
    }
    npy_intp low = 0, high = 0, other_low, other_high;
    if (source.is_empty() || target.is_empty()) return declined();
    source.bounds(low, high), target.bounds(other_low, other_high);
    low = std::min(low, other_low), high = std::max(high, other_high);
    PyArrayObject *r = empty(x, target.nd, target.shape);
    if (!r) return nullptr;
    if (type == F4) move<float>(x, r, source, target, shared, low, high - low + 1);
    else move<double>(x, r, source, target, shared, low, high - low + 1);
    return (PyObject *)r;
}

}  // namespace moving

int register_windows(PyObject *module) {
    using namespace moving;
    return make_function(module, "geometry", geometry) ||
                   make_function(module, "as_strided", as_strided) ||
                   make_function(module, "as_strided_scatter", as_strided_scatter) ||
                   make_function(module, "by_memory", by_memory)
               ? -1
               : 0;
}
