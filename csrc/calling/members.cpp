// The common cases of what tensors are asked, and of conversions: `x.size()`, `x.item()`,
// `x.to(dtype)`. Each takes the values of a bound call and gives NotImplemented where the body in
// Python is to do it: `flambeau/ops/python/methods.py`, `flambeau/ops/view/conversion.py`.
#include "arrays.h"
#include "calling/calling.h"

using namespace fast;

namespace calling {

static PyObject *other() { Py_RETURN_NOTIMPLEMENTED; }

static PyArrayObject *array_of(PyObject *tensor) {
    PyObject *array = is_plain_tensor(tensor) ? slot(tensor, core.array) : nullptr;
    return array && PyArray_CheckExact(array) ? (PyArrayObject *)array : nullptr;
}

// ---- form ---------------------------------------------------------------------------------------

static PyObject *dim(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    return x ? PyLong_FromLong(PyArray_NDIM(x)) : other();
}

static PyObject *numel(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    return x ? PyLong_FromSsize_t(PyArray_SIZE(x)) : other();
}

static PyObject *element_size(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    return x ? PyLong_FromSsize_t(PyArray_ITEMSIZE(x)) : other();
}

static PyObject *data_ptr(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    return x ? PyLong_FromVoidPtr(PyArray_SIZE(x) ? PyArray_DATA(x) : nullptr) : other();
}

// A dimension, or -1: none is given, or there is none of that number.
static int place(PyObject *dim, int nd) {
    int overflow;
    long d = PyLong_CheckExact(dim) ? PyLong_AsLongAndOverflow(dim, &overflow) : -1 - nd;
    return d >= 0 && d < nd ? int(d) : d < 0 && d >= -nd ? int(d + nd) : -1;
}

// `self` is the class `Size`.
static PyObject *size(PyObject *self, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    if (!x) return other();
    int nd = PyArray_NDIM(x);
    if (args[1] != Py_None) {
        int d = place(args[1], nd);
        return d < 0 ? other() : PyLong_FromSsize_t(PyArray_DIM(x, d));
    }
    PyTypeObject *type = (PyTypeObject *)self;
    PyObject *shape = type->tp_alloc(type, nd);
    for (int d = 0; shape && d < nd; d++)
        PyTuple_SET_ITEM(shape, d, PyLong_FromSsize_t(PyArray_DIM(x, d)));
    return shape;
}

// Strides as PyTorch counts them: `stepping` in `flambeau/kernels/moving/views.py`. False: not this case.
static bool strides_of(PyArrayObject *x, npy_intp *strides) {
    npy_intp item = PyArray_ITEMSIZE(x), after = 1;
    if (!item) return false;
    settle(x);
    for (int d = PyArray_NDIM(x) - 1; d >= 0; d--) {
        strides[d] = PyArray_STRIDE(x, d) / item;
        if (PyArray_DIM(x, d) == 1 && !strides[d]) strides[d] = after;
        after = PyArray_DIM(x, d) * strides[d];
    }
    return true;
}

static PyObject *stride(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    npy_intp strides[NPY_MAXDIMS];
    if (!x || !strides_of(x, strides)) return other();
    int nd = PyArray_NDIM(x);
    if (args[1] != Py_None) {
        int d = place(args[1], nd);
        return d < 0 ? other() : PyLong_FromSsize_t(strides[d]);
    }
    PyObject *all = PyTuple_New(nd);
    for (int d = 0; all && d < nd; d++) PyTuple_SET_ITEM(all, d, PyLong_FromSsize_t(strides[d]));
    return all;
}

static PyObject *is_contiguous(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    if (!x || (args[1] != Py_None && args[1] != binding::known.contiguous)) return other();
    return PyBool_FromLong(PyArray_IS_C_CONTIGUOUS(x));
}

static PyObject *is_floating_point(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    int type = x ? PyArray_TYPE(x) : NPY_USERDEF;
    return type >= NPY_USERDEF ? other()
                               : PyBool_FromLong(PyTypeNum_ISFLOAT(type) || type == NPY_HALF);
}

static PyObject *is_complex(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    int type = x ? PyArray_TYPE(x) : NPY_USERDEF;
    return type >= NPY_USERDEF ? other() : PyBool_FromLong(PyTypeNum_ISCOMPLEX(type));
}

// ---- values -------------------------------------------------------------------------------------

static bool is_usual(PyArrayObject *x) {
    return x && PyArray_TYPE(x) < NPY_USERDEF && PyArray_TYPE(x) != NPY_OBJECT &&
           PyArray_TYPE(x) != NPY_VOID;
}

static PyObject *item(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    if (!is_usual(x) || PyArray_SIZE(x) != 1) return other();
    return PyArray_GETITEM(x, PyArray_BYTES(x));
}

static PyObject *tolist(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    return is_usual(x) ? PyArray_ToList(x) : other();
}

static PyObject *numpy(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    if (!is_usual(x) || args[1] != Py_False || !is_none(slot(args[0], core.edge))) return other();
    return incref((PyObject *)x);
}

// The same memory outside the graph; writes to either are counted.
static PyObject *detach(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    PyObject *counter = x ? counter_of(args[0]) : nullptr;
    if (!counter) return PyErr_Occurred() ? nullptr : other();
    PyObject *result = make_tensor(incref((PyObject *)x));
    if (result) set(result, core.counter, incref(counter));
    return result;
}

static PyObject *requires_grad(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    PyObject *edge = x ? slot(args[0], core.edge) : nullptr, *wanted = args[1];
    if (!edge || (edge != Py_None && edge != core.leaf) || !is_none(slot(args[0], core.base)) ||
        (wanted != Py_True && wanted != Py_False))
        return other();
    PyObject *counter = slot(args[0], core.counter);
    if (counter && Py_TYPE(counter) == core.untracked) return other();  // made in inference mode
    if (wanted == Py_True && !is_floating((PyObject *)x)) return other();
    set(args[0], core.edge, incref(wanted == Py_True ? core.leaf : Py_None));
    return incref(args[0]);
}

// ---- conversions --------------------------------------------------------------------------------

// Whether memory in that format is what the tensor has: 1, 0, or -1 for the body to find out.
static int is_laid_out(PyArrayObject *x, PyObject *format) {
    if (format == Py_None || format == binding::known.preserve) return 1;
    if (format != binding::known.contiguous || !PyArray_IS_C_CONTIGUOUS(x)) return -1;
    for (int d = 0; d < PyArray_NDIM(x); d++)
        if (PyArray_DIM(x, d) == 1) return -1;
    return 1;
}

// `self` is (the call of `_to_copy`, a NumPy type or None).
static PyObject *converted(PyObject *self, PyObject *tensor, PyArray_Descr *to, PyObject *copies,
                           PyObject *format) {
    PyArrayObject *x = array_of(tensor);
    PyObject *op = PyTuple_GET_ITEM(self, 0);
    if (!x || Py_TYPE(op) != &CallableType) return other();
    PyObject *type = Py_None;
    if (to && to->type_num != PyArray_TYPE(x)) {
        type = (PyObject *)to;
    } else if (copies != Py_True) {
        int laid_out = is_laid_out(x, format);
        if (laid_out > 0) return incref(tensor);
        if (laid_out < 0) return other();
    }
    PyObject *canonical[] = {tensor, type, format};
    PyObject *result = call_plain((Callable *)op, canonical, 3);
    return result || PyErr_Occurred() ? result : other();
}

static bool is_cpu(PyObject *device) {
    return device == Py_None || device == core.cpu ||
           (PyUnicode_CheckExact(device) && !PyUnicode_CompareWithASCIIString(device, "cpu"));
}

// to(self, device, dtype, non_blocking, copy, memory_format, other)
static PyObject *to(PyObject *self, PyObject *const *args, Py_ssize_t) {
    static PyObject *numpy = PyUnicode_InternFromString("numpy");
    if (!is_cpu(args[1])) return other();
    if (args[6] != Py_None) {
        PyArrayObject *like = array_of(args[6]);
        return like ? converted(self, args[0], PyArray_DESCR(like), args[4], args[5]) : other();
    }
    Ref type(args[2] == Py_None ? nullptr : PyObject_GetAttr(args[2], numpy));
    if (args[2] != Py_None && (!type || !PyArray_DescrCheck(type.get()))) {
        PyErr_Clear();
        return other();
    }
    return converted(self, args[0], (PyArray_Descr *)type.get(), args[4], args[5]);
}

// to_type(self, memory_format)
static PyObject *to_type(PyObject *self, PyObject *const *args, Py_ssize_t) {
    return converted(self, args[0], (PyArray_Descr *)PyTuple_GET_ITEM(self, 1), Py_False, args[1]);
}

// type_as(self, other)
static PyObject *type_as(PyObject *self, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *like = array_of(args[1]);
    return like ? converted(self, args[0], PyArray_DESCR(like), Py_False, Py_None) : other();
}

// contiguous(self, memory_format)
static PyObject *contiguous(PyObject *, PyObject *const *args, Py_ssize_t) {
    PyArrayObject *x = array_of(args[0]);
    if (!x || !PyArray_IS_C_CONTIGUOUS(x) ||
        (args[1] != Py_None && args[1] != binding::known.contiguous))
        return other();
    return incref(args[0]);
}

#define MEMBER(function) {#function, (PyCFunction)(void (*)())function, METH_FASTCALL, nullptr}
static PyMethodDef members[] = {
    MEMBER(dim), MEMBER(numel), MEMBER(element_size), MEMBER(data_ptr), MEMBER(size), MEMBER(stride),
    MEMBER(is_contiguous), MEMBER(is_floating_point), MEMBER(is_complex), MEMBER(item), MEMBER(tolist),
    MEMBER(numpy), MEMBER(detach), MEMBER(requires_grad), MEMBER(to), MEMBER(to_type), MEMBER(type_as),
    MEMBER(contiguous), {nullptr, nullptr, 0, nullptr}};

// member(name, knows): the function of that name, with what it is told.
static PyObject *make_member(PyObject *, PyObject *args) {
    const char *name;
    PyObject *knows;
    if (!PyArg_ParseTuple(args, "sO", &name, &knows)) return nullptr;
    for (PyMethodDef *m = members; m->ml_name; m++)
        if (!std::strcmp(m->ml_name, name)) return PyCFunction_New(m, knows);
    return PyErr_Format(PyExc_KeyError, "no member %s", name);
}

static PyMethodDef module_methods[] = {{"make_member", make_member, METH_VARARGS, nullptr},
                                       {nullptr, nullptr, 0, nullptr}};

}  // namespace calling

int register_members(PyObject *module) {
    return PyModule_AddFunctions(module, calling::module_methods);
}
