// Pointwise ops on one plain tensor, or on two of one dtype, or on one and a Python number.
#include "fast.h"

namespace fast {

// Is this a Python number that becomes an element of `dtype` exactly as core/promotion.py makes it?
static bool is_operand(PyObject *x, DType dtype) {
    if (dtype == F4 || dtype == F8) {
        if (PyFloat_CheckExact(x)) return true;
        if (!PyLong_CheckExact(x)) return false;
        int overflow;
        long value = PyLong_AsLongAndOverflow(x, &overflow);
        return !overflow && value > -(1 << 24) && value < (1 << 24);
    }
    if (dtype < U1 || dtype > I8 || !PyLong_CheckExact(x)) return false;
    int overflow;
    long value = PyLong_AsLongAndOverflow(x, &overflow);
    return !overflow && value >= 0 && value < 128;
}

// Null without an error: not this case.
static PyObject *run(Callable *f, PyObject *const *args, PyObject *out) {
    Ref x(slot(args[0], core.array)), y;
    if (!x) return nullptr;
    Py_INCREF(x.get());
    if (!is_plain(x.get())) return nullptr;
    DType dtype = dtype_of(PyArray_TYPE((PyArrayObject *)x.get()));
    if (dtype == NONE || !(f->dtypes >> dtype & 1)) return nullptr;
    if (f->tensors == 2) {
        PyObject *other = args[1];
        if (is_plain_tensor(other)) {
            other = slot(other, core.array);
            if (!other || !is_plain(other) ||
                PyArray_DESCR((PyArrayObject *)other) != PyArray_DESCR((PyArrayObject *)x.get()))
                return nullptr;
        } else if (!f->numbers || !is_operand(other, dtype)) {
            return nullptr;
        }
        y.take(incref(other));
    }
    PyObject *operands[3] = {x.get(), y.get(), out};
    PyObject *r = PyObject_Vectorcall(f->kernel, operands, f->tensors + (out ? 1 : 0), nullptr);
    if (!r && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError)))
        PyErr_Clear();  // the closure will say what is wrong
    return as_array(r);
}

PyObject *call_pointwise(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    if (PyVectorcall_NARGS(nargsf) != f->tensors || names || watched() || !is_plain_tensor(args[0]))
        return guarded_closure(f, args, nargsf, names);
    PyObject *array = run(f, args, nullptr);
    if (!array) return PyErr_Occurred() ? nullptr : guarded_closure(f, args, nargsf, names);
    Ref result(make_tensor(array));
    if (!result || !f->differentiable) return result.release();
    bool second = f->tensors == 2 && is_plain_tensor(args[1]);
    if (is_none(slot(args[0], core.edge)) && (!second || is_none(slot(args[1], core.edge))))
        return result.release();
    int recorded = grad_enabled();
    if (recorded < 0) return nullptr;
    if (!recorded || !is_floating(array)) return result.release();
    Ref edges(PyTuple_New(f->tensors));
    if (!edges) return nullptr;
    recorded = 0;
    for (int i = 0; i < f->tensors; i++) {
        PyObject *edge = i && !second ? incref(Py_None) : edge_of(args[i]);
        if (!edge) return nullptr;
        recorded |= edge != Py_None;
        PyTuple_SET_ITEM(edges.get(), i, edge);
    }
    if (recorded && record(f, args, edges.release(), result.get()) < 0) return nullptr;
    return result.release();
}

static int needs_care(PyObject *input, PyObject *other) {
    bool tracked = !is_none(slot(input, core.edge)) ||
                   (is_plain_tensor(other) && !is_none(slot(other, core.edge)));
    if (tracked) {
        int on = grad_enabled();
        if (on) return on;
    }
    return Py_TYPE(slot(input, core.counter)) == core.untracked;
}

static void bounds(PyArrayObject *a, char **begin, char **end) {
    *begin = *end = (char *)PyArray_DATA(a);
    for (int d = 0; d < PyArray_NDIM(a); d++) {
        npy_intp n = PyArray_DIM(a, d), step = PyArray_STRIDE(a, d);
        if (!n) return (void)(*end = *begin);
        (step < 0 ? *begin : *end) += (n - 1) * step;
    }
    *end += PyArray_ITEMSIZE(a);
}

// Does the operand share memory with what is written, without being the same elements in the same
// order? Some of these are refused: the closure knows which.
static bool shares_memory(PyArrayObject *x, PyObject *other) {
    if (!is_plain_tensor(other)) return false;
    PyArrayObject *y = (PyArrayObject *)slot(other, core.array);
    if (!y || !PyArray_Check(y)) return true;
    char *x_begin, *x_end, *y_begin, *y_end;
    bounds(x, &x_begin, &x_end), bounds(y, &y_begin, &y_end);
    if (x_end <= y_begin || y_end <= x_begin) return false;
    return PyArray_DATA(x) != PyArray_DATA(y) || x_end != y_end || !PyArray_IS_C_CONTIGUOUS(y);
}

PyObject *call_inplace(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    if (PyVectorcall_NARGS(nargsf) != 2 || names || watched() || !is_plain_tensor(args[0]))
        return guarded_closure(f, args, nargsf, names);
    int care = needs_care(args[0], args[1]);
    if (care < 0) return nullptr;
    Ref x(slot(args[0], core.array));
    Py_XINCREF(x.get());
    if (care || !x || !PyArray_Check(x.get()) ||
        !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x.get()) ||
        shares_memory((PyArrayObject *)x.get(), args[1]))
        return guarded_closure(f, args, nargsf, names);
    Ref r(run(f, args, x.get()));
    if (!r && PyErr_Occurred()) return nullptr;
    if (r.get() != x.get()) return guarded_closure(f, args, nargsf, names);
    return bump(args[0]) < 0 ? nullptr : incref(args[0]);
}

}  // namespace fast
