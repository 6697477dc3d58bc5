// What writes to tensors that are there: in-place forms and `out=`. Their twins are
// `flambeau/ops/inplace.py` and `store` of `flambeau/ops/coercion.py`.
#include "calling/pointwise.h"
#include "kernels/moving/strided.h"

PyArrayObject *cast_array(PyArrayObject *x, DType to);

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
    if (!PyArray_SIZE(a)) return false;
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
    if (edge != core.lazy) return true;
    PyObject *base = slot(tensor, core.base), *view = slot(tensor, core.view_slot);
    return is_none(base) || !is_none(slot(base, core.edge)) || !view ||
           !is_none(slot(view, core.view_node));
}

// Is there a history, of what is written or of what is read? -1: an error.
static int has_history(const TensorArguments &inputs, PyObject *written) {
    bool tracked = is_tracked(written);
    for (Py_ssize_t i = 0; i < inputs.n; i++)
        tracked |= is_plain_tensor(inputs.items[i]) && is_tracked(inputs.items[i]);
    return tracked ? grad_enabled() : 0;
}

static bool same_kind(PyArrayObject *x, PyArrayObject *r) {
    return dtype_of(PyArray_TYPE(x)) == dtype_of(PyArray_TYPE(r)) &&
           PyArray_NDIM(x) == PyArray_NDIM(r) &&
           PyArray_CompareLists(PyArray_DIMS(x), PyArray_DIMS(r), PyArray_NDIM(x));
}

// Truths, in the type of what is written; all else as it is.
static PyArrayObject *as_numbers(PyArrayObject *target, Ref &result) {
    PyArrayObject *r = (PyArrayObject *)result.get();
    DType d = dtype_of(PyArray_TYPE(target));
    if (PyArray_TYPE(r) != NPY_BOOL || d == B1 || d == NONE) return r;
    result.take((PyObject *)cast_array(r, d));
    return (PyArrayObject *)result.get();
}

// Compute into `target`'s memory. False without an error: not this case, and nothing is written.
static bool write(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyArrayObject *target,
                  bool directly, bool casts = false) {
    Ref held(incref((PyObject *)target));
    moving::Writing writing(f->pointwise ? nullptr : target);
    Ref result(compute(f, canonical, n, directly ? target : nullptr));
    if (!result) return false;
    if (result.get() == (PyObject *)target) return true;
    PyArrayObject *r = casts ? as_numbers(target, result) : (PyArrayObject *)result.get();
    return r && same_kind(target, r) && PyArray_CopyInto(target, r) == 0;
}

// The tensor as it was before the write, for a node that saves its values.
static PyObject *copy_of(PyArrayObject *array, PyObject *edge) {
    PyObject *values = PyArray_NewCopy(array, NPY_KEEPORDER);
    PyObject *copy = values ? make_tensor(values) : nullptr;
    if (copy) set(copy, core.edge, incref(edge));
    return copy;
}

static bool saves_first(Callable *f) {
    for (int i = 0; i < f->nsaved; i++)
        if (f->saved[i].kind >= Saved::TENSOR && f->saved[i].where == 0 &&
            (f->saved[i].kind == Saved::TENSOR || f->saved[i].kind == Saved::TENSORS))
            return true;
    return false;
}

// Does each element of the result depend on the elements in its place alone?
static bool is_elementwise(Callable *f) {
    if (f->pointwise) return true;
    Ref declaration(PyObject_GetAttrString(f->op, "declaration"));
    Ref overlap(declaration ? PyObject_GetAttrString(declaration.get(), "overlap") : nullptr);
    if (!overlap) PyErr_Clear();
    return overlap && PyUnicode_Check(overlap.get()) &&
           PyUnicode_CompareWithASCIIString(overlap.get(), "element") == 0;
}

// May the operands be read while the result is written? Element by element the memory may be the same,
// if nothing saves it.
static bool may_read(Callable *f, const TensorArguments &inputs, PyArrayObject *target, bool saves) {
    for (Py_ssize_t i = 1; i < inputs.n; i++)
        if (shares_memory(target, inputs.items[i], false) &&
            (saves || !is_elementwise(f) || shares_memory(target, inputs.items[i], true)))
            return false;
    return true;
}

// The in-place form where something has a history: the tensor gets the node of the call.
static PyObject *write_recorded(Callable *f, PyObject *const *canonical, Py_ssize_t n,
                                PyArrayObject *target) {
    TensorArguments inputs(f, canonical);
    PyObject *tensor = inputs.items[0];
    if (!f->differentiable || !may_rebase(tensor)) return PyErr_Clear(), nullptr;
    if (!may_read(f, inputs, target, f->nsaved)) return nullptr;
    Ref edges(PyTuple_New(inputs.n)), before;
    bool recorded = false;
    for (Py_ssize_t i = 0; edges && i < inputs.n; i++) {
        PyObject *edge = is_plain_tensor(inputs.items[i]) ? edge_of(inputs.items[i]) : incref(Py_None);
        if (!edge) return nullptr;
        recorded |= edge != Py_None;
        PyTuple_SET_ITEM(edges.get(), i, edge);
    }
    if (!edges || !recorded) return nullptr;
    PyObject *items[MAX_ARGS];
    for (Py_ssize_t i = 0; i < n; i++) items[i] = canonical[i];
    if (saves_first(f)) {
        if (f->tensors < 0) return nullptr;
        before.take(copy_of(target, PyTuple_GET_ITEM(edges.get(), 0)));
        items[0] = before.get();
        if (!items[0]) return nullptr;
    }
    if (check_saving(f, items, edges.get()) < 0) return nullptr;
    if (!write(f, canonical, n, target, false) || bump(tensor) < 0) return nullptr;
    return record_write(f, items, edges.release(), tensor) < 0 ? nullptr : incref(tensor);
}

PyObject *write_inplace(Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    if (!f->tensors || n < f->tensors || n > MAX_ARGS || !is_none(f->returns) || f->view) return nullptr;
    TensorArguments inputs(f, canonical);
    PyObject *tensor = inputs.n ? inputs.items[0] : Py_None;
    PyArrayObject *target = writable(tensor);
    int history = target ? has_history(inputs, tensor) : -1;
    if (history < 0) return nullptr;
    if (history)  // hooks of saved tensors are called where the write is made of other ops
        return PyList_GET_SIZE(core.saved_tensor_hooks) ? nullptr : write_recorded(f, canonical, n, target);
    if (!may_read(f, inputs, target, false)) return nullptr;
    bool directly = f->pointwise && PyArray_IS_C_CONTIGUOUS(target);
    if (!write(f, canonical, n, target, directly, f->pointwise)) return nullptr;
    return bump(tensor) < 0 ? nullptr : incref(tensor);
}

// The in-place form of an op, whose own callable is the kernel of this one.
PyObject *call_inplace(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    PyObject *result = names || watched() ? nullptr
                                          : write_inplace((Callable *)f->kernel, args, PyVectorcall_NARGS(nargsf));
    if (!result && PyErr_Occurred() &&
        (PyErr_ExceptionMatches(PyExc_NotImplementedError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        PyErr_Clear();  // no kernel, or a Misfit: the closure says what is wrong
    return result || PyErr_Occurred() ? result : fall_back(f, args, nargsf, names);
}

// A tuple of tensors for several results: all of them fit, or nothing is written.
static PyObject *write_outs(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *outs) {
    PyTypeObject *type = (PyTypeObject *)f->returns;
    bool named = PyType_IsSubtype(type, &PyTuple_Type) && type != &PyTuple_Type;  // lists give nothing
    if (!PyTuple_CheckExact(outs) || f->pointwise || !named) return nullptr;
    Py_ssize_t count = PyTuple_GET_SIZE(outs);
    PyObject **items = &PyTuple_GET_ITEM(outs, 0);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyArrayObject *target = writable(items[k]);
        if (!target || has_history(TensorArguments(f, canonical), items[k])) return nullptr;
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

// Does one of those, or of the tensors in a list of them, share memory with what is written?
static bool any_shares_memory(PyArrayObject *target, PyObject *const *values, Py_ssize_t n,
                              bool elementwise) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (PyList_Check(values[i]) || PyTuple_Check(values[i])) {
            PyObject *list = values[i];
            if (any_shares_memory(target, PySequence_Fast_ITEMS(list), PySequence_Fast_GET_SIZE(list), elementwise))
                return true;
        } else if (shares_memory(target, values[i], elementwise)) {
            return true;
        }
    return false;
}

static bool any_is_tracked(PyObject *const *values, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++) {
        bool list = PyList_Check(values[i]) || PyTuple_Check(values[i]);
        if (list ? any_is_tracked(PySequence_Fast_ITEMS(values[i]), PySequence_Fast_GET_SIZE(values[i]))
                 : is_plain_tensor(values[i]) && is_tracked(values[i]))
            return true;
    }
    return false;
}

bool may_store(PyObject *out, PyObject *const *values, Py_ssize_t n) {
    PyArrayObject *target = writable(out);
    return target && !any_shares_memory(target, values, n, false) &&
           (!(is_tracked(out) || any_is_tracked(values, n)) || grad_enabled() == 0);
}

bool store(PyObject *out, PyObject *array) {
    PyArrayObject *target = (PyArrayObject *)slot(out, core.array), *given = (PyArrayObject *)array;
    return PyArray_Check(array) && same_kind(target, given) && PyArray_CopyInto(target, given) == 0 &&
           bump(out) == 0;
}

PyObject *write_out(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *out) {
    if (n < f->tensors || !n || f->view) return nullptr;
    if (f->tensors < 0 && !PyTuple_Check(canonical[0]) && !PyList_Check(canonical[0])) return nullptr;
    if (!is_none(f->returns)) return f->tensors < 0 ? nullptr : write_outs(f, canonical, n, out);
    TensorArguments inputs(f, canonical);
    PyArrayObject *target = writable(out);
    int history = target ? has_history(inputs, out) : 1;
    if (history || any_shares_memory(target, inputs.items, inputs.n, f->pointwise)) return nullptr;
    if (!write(f, canonical, n, target, false)) return nullptr;
    return bump(out) < 0 ? nullptr : incref(out);
}

}  // namespace fast
