// What writes to tensors that are there: in-place forms and `out=`. Their twins are
// `flambeau/ops/inplace.py` and `store` of `flambeau/ops/coercion.py`.
#include "calling/pointwise.h"
#include "kernels/moving/strided.h"

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

// May it have a history? A view of a tensor without one has none.
static bool is_tracked(PyObject *tensor) {
    PyObject *edge = slot(tensor, core.edge);
    if (is_none(edge)) return false;
    if (edge != core.lookup) return true;
    PyObject *base = slot(tensor, core.base), *view = slot(tensor, core.view_slot);
    return is_none(base) || !is_none(slot(base, core.edge)) || !view ||
           !is_none(slot(view, core.view_node));
}

// Is there a history, of what is written or of what is read? -1: an error.
static int has_history(Callable *f, PyObject *const *canonical, PyObject *written) {
    bool tracked = is_tracked(written);
    for (int i = 0; i < f->tensors; i++)
        tracked |= is_plain_tensor(canonical[i]) && is_tracked(canonical[i]);
    return tracked ? grad_enabled() : 0;
}

static bool is_true(PyObject *object, PyObject *name) {
    Ref value(PyObject_GetAttr(object, name));
    return !value || PyObject_IsTrue(value.get());
}

// May the history of a tensor be replaced by a node without more ado? Not that of leaves and views,
// where PyTorch refuses writes, or the history is that of the base.
static bool takes_node(Callable *f, PyObject *tensor) {
    static PyObject *retains = PyUnicode_InternFromString("_retains_grad"),
                    *renamed = PyUnicode_InternFromString("inplace_node");
    PyObject *edge = slot(tensor, core.edge);
    return f->differentiable && is_none(slot(tensor, core.base)) && edge != core.leaf &&
           edge != core.lookup && is_floating(slot(tensor, core.array)) &&
           !is_true(tensor, retains) && !is_true(f->op, renamed);
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
    moving::Writing writing(f->pointwise ? nullptr : target);
    Ref result(compute(f, canonical, n, directly ? target : nullptr));
    if (!result) return false;
    if (result.get() == (PyObject *)target) return true;
    PyArrayObject *r = (PyArrayObject *)result.get();
    return same_kind(target, r) && PyArray_CopyInto(target, r) == 0;
}

// The tensor as it was before the write, for a node that saves its values.
static PyObject *copy_of(PyObject *tensor, PyArrayObject *array) {
    PyObject *values = PyArray_NewCopy(array, NPY_KEEPORDER);
    PyObject *copy = values ? make_tensor(values) : nullptr;
    if (copy) set(copy, core.edge, incref(slot(tensor, core.edge)));
    return copy;
}

static bool saves_first(Callable *f) {
    for (int i = 0; i < f->nsaved; i++)
        if (f->saved[i].kind == Saved::TENSOR && f->saved[i].where == 0) return true;
    return false;
}

// The in-place form where something has a history: the tensor gets the node of the call.
static PyObject *write_recorded(Callable *f, PyObject *const *canonical, Py_ssize_t n,
                                PyArrayObject *target) {
    PyObject *tensor = canonical[0];
    if (!takes_node(f, tensor)) return PyErr_Clear(), nullptr;
    for (int i = 1; i < f->tensors; i++)
        if (shares_memory(target, canonical[i], false)) return nullptr;
    Ref edges(PyTuple_New(f->tensors)), before;
    bool recorded = false;
    for (int i = 0; edges && i < f->tensors; i++) {
        PyObject *edge = is_plain_tensor(canonical[i]) ? edge_of(canonical[i]) : incref(Py_None);
        if (!edge) return nullptr;
        recorded |= edge != Py_None;
        PyTuple_SET_ITEM(edges.get(), i, edge);
    }
    if (!edges || !recorded) return nullptr;
    PyObject *items[MAX_ARGS];
    for (Py_ssize_t i = 0; i < n; i++) items[i] = canonical[i];
    if (saves_first(f)) {
        before.take(copy_of(tensor, target));
        items[0] = before.get();
        if (!items[0]) return nullptr;
    }
    if (!write(f, canonical, n, target, false) || bump(tensor) < 0) return nullptr;
    return record(f, items, edges.release(), tensor) < 0 ? nullptr : incref(tensor);
}

PyObject *write_inplace(Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    if (f->tensors < 1 || n < f->tensors || n > MAX_ARGS || !is_none(f->returns) || f->view)
        return nullptr;
    PyArrayObject *target = writable(canonical[0]);
    int history = target ? has_history(f, canonical, canonical[0]) : -1;
    if (history < 0) return nullptr;
    if (history) return write_recorded(f, canonical, n, target);
    for (int i = 1; i < f->tensors; i++)
        if (shares_memory(target, canonical[i], f->pointwise)) return nullptr;
    bool directly = f->pointwise && PyArray_IS_C_CONTIGUOUS(target);
    if (!write(f, canonical, n, target, directly)) return nullptr;
    return bump(canonical[0]) < 0 ? nullptr : incref(canonical[0]);
}

// A tuple of tensors for several results: all of them fit, or nothing is written.
static PyObject *write_outs(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *outs) {
    PyTypeObject *type = (PyTypeObject *)f->returns;
    if (!PyTuple_CheckExact(outs) || f->pointwise || !PyType_IsSubtype(type, &PyTuple_Type)) return nullptr;
    Py_ssize_t count = PyTuple_GET_SIZE(outs);
    PyObject **items = &PyTuple_GET_ITEM(outs, 0);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyArrayObject *target = writable(items[k]);
        if (!target || has_history(f, canonical, items[k])) return nullptr;
        for (int i = 0; i < f->tensors; i++)
            if (shares_memory(target, canonical[i], false)) return nullptr;
        for (Py_ssize_t other = 0; other < k; other++)
            if (shares_memory(target, items[other], false)) return nullptr;
    }
    Ref found(compute(f, canonical, n, nullptr));
    Ref arrays(found ? PySequence_Fast(found.get(), "a kernel of several results gave one") : nullptr);
    if (!arrays || PySequence_Fast_GET_SIZE(arrays.get()) != count) return nullptr;
    PyObject **results = PySequence_Fast_ITEMS(arrays.get());
    for (Py_ssize_t k = 0; k < count; k++)
        if (!PyArray_Check(results[k]) ||
            !same_kind((PyArrayObject *)slot(items[k], core.array), (PyArrayObject *)results[k]))
            return nullptr;
    Ref given(type->tp_alloc(type, count));
    for (Py_ssize_t k = 0; given && k < count; k++) {
        PyArrayObject *target = (PyArrayObject *)slot(items[k], core.array);
        if (PyArray_CopyInto(target, (PyArrayObject *)results[k]) < 0 || bump(items[k]) < 0)
            return nullptr;
        PyTuple_SET_ITEM(given.get(), k, incref(items[k]));
    }
    return given.release();
}

PyObject *write_out(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *out) {
    if (f->tensors < 0 || n < f->tensors || f->view) return nullptr;
    if (!is_none(f->returns)) return write_outs(f, canonical, n, out);
    PyArrayObject *target = writable(out);
    int history = target ? has_history(f, canonical, out) : 1;
    if (history) return nullptr;
    for (int i = 0; i < f->tensors; i++)
        if (shares_memory(target, canonical[i], f->pointwise)) return nullptr;
    if (!write(f, canonical, n, target, false)) return nullptr;
    return bump(out) < 0 ? nullptr : incref(out);
}

}  // namespace fast
