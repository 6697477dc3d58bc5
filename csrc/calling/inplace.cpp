// What writes to tensors that are there: in-place forms and `out=`. Their twins are
// `flambeau/ops/inplace.py` and `store` of `flambeau/ops/coercion.py`.
#include "pointwise.h"

namespace fast {

struct Bounds {
    char *begin, *end;
};

static Bounds bounds_of(PyArrayObject *a) {
    char *begin = (char *)PyArray_DATA(a), *end = begin;
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp n = PyArray_DIM(a, d), step = PyArray_STRIDE(a, d);
        if (!n) return {begin, begin};
        (step < 0 ? begin : end) += (n - 1) * step;
    }
    return {begin, end + PyArray_ITEMSIZE(a)};
}

static bool same_elements(PyArrayObject *x, PyArrayObject *y) {
    int ndim = PyArray_NDIM(x);
    return PyArray_DATA(x) == PyArray_DATA(y) && ndim == PyArray_NDIM(y) &&
           PyArray_ITEMSIZE(x) == PyArray_ITEMSIZE(y) &&
           PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(y), ndim) &&
           PyArray_CompareLists(PyArray_STRIDES(x), PyArray_STRIDES(y), ndim);
}

// Does an operand share memory with what is written? Element by element it may be the same.
static bool shares_memory(PyArrayObject *x, PyObject *operand, bool elementwise) {
    if (!is_plain_tensor(operand)) return false;
    PyArrayObject *y = (PyArrayObject *)slot(operand, core.array);
    if (!y || !PyArray_Check(y)) return true;
    Bounds a = bounds_of(x), b = bounds_of(y);
    if (a.end <= b.begin || b.end <= a.begin) return false;
    return !elementwise || !same_elements(x, y);
}

// Are several elements one in memory?
static bool is_expanded(PyArrayObject *a) {
    for (int d = 0; d < PyArray_NDIM(a); d++)
        if (PyArray_DIM(a, d) > 1 && PyArray_STRIDE(a, d) == 0) return true;
    return !(PyArray_IS_C_CONTIGUOUS(a) || PyArray_NDIM(a) < 2) && PyArray_SIZE(a) > 1 &&
           bounds_of(a).end - bounds_of(a).begin < PyArray_NBYTES(a);
}

// The array of a tensor that may be written to without a look at its history; null: ask the twin.
static PyArrayObject *writable(PyObject *tensor) {
    if (!is_plain_tensor(tensor)) return nullptr;
    PyArrayObject *array = (PyArrayObject *)slot(tensor, core.array);
    if (!array || !is_plain((PyObject *)array) || !PyArray_ISWRITEABLE(array) || is_expanded(array) ||
        Py_TYPE(slot(tensor, core.counter)) == core.untracked)
        return nullptr;
    return array;
}

// Is there a history, of what is written or of what is read? -1: an error.
static int has_history(Callable *f, PyObject *const *canonical, PyObject *written) {
    bool tracked = !is_none(slot(written, core.edge));
    for (int i = 0; i < f->tensors; i++)
        tracked |= is_plain_tensor(canonical[i]) && !is_none(slot(canonical[i], core.edge));
    return tracked ? grad_enabled() : 0;
}

static bool same_kind(PyArrayObject *x, PyArrayObject *r) {
    return dtype_of(PyArray_TYPE(x)) == dtype_of(PyArray_TYPE(r)) &&
           PyArray_NDIM(x) == PyArray_NDIM(r) &&
           PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(r), PyArray_NDIM(x));
}

// Compute into `target`'s memory. False without an error: not this case, and nothing is written.
static bool write(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyArrayObject *target,
                  bool directly) {
    Ref held(incref((PyObject *)target));
    Ref result(compute(f, canonical, n, directly ? target : nullptr));
    if (!result) return false;
    if (result.get() == (PyObject *)target) return true;
    PyArrayObject *r = (PyArrayObject *)result.get();
    return same_kind(target, r) && PyArray_CopyInto(target, r) == 0;
}

PyObject *write_inplace(Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    if (f->tensors < 1 || n < f->tensors || !is_none(f->returns) || f->view) return nullptr;
    PyArrayObject *target = writable(canonical[0]);
    int history = target ? has_history(f, canonical, canonical[0]) : 1;
    if (history) return nullptr;
    for (int i = 1; i < f->tensors; i++)
        if (shares_memory(target, canonical[i], f->pointwise)) return nullptr;
    bool directly = f->pointwise && PyArray_IS_C_CONTIGUOUS(target);
    if (!write(f, canonical, n, target, directly)) return nullptr;
    return bump(canonical[0]) < 0 ? nullptr : incref(canonical[0]);
}

PyObject *write_out(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *out) {
    if (f->tensors < 0 || n < f->tensors || !is_none(f->returns) || f->view) return nullptr;
    PyArrayObject *target = writable(out);
    int history = target ? has_history(f, canonical, out) : 1;
    if (history) return nullptr;
    for (int i = 0; i < f->tensors; i++)
        if (shares_memory(target, canonical[i], f->pointwise)) return nullptr;
    if (!write(f, canonical, n, target, false)) return nullptr;
    return bump(out) < 0 ? nullptr : incref(out);
}

}  // namespace fast
