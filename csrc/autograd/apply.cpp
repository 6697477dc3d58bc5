// The derivative of an op with one result, as `make_apply` of core/autograd/formulas.py puts it
// together: for each input that wants a gradient what its rule gives for `grad` and the saved
// values. Of a pointwise op the rule gives a factor, or a divisor, of `grad`.
#include "tensors.h"

namespace fast {

// What rules take beside saved values, counted as `_positions` does.
constexpr Py_ssize_t GRAD = -2, NEEDS = -1;

// A saved value as rules get it. Null without an error: the closure has to look.
static PyObject *unpack(const Saved &s, PyObject *node, PyObject *entry) {
    if (entry == Py_None || (s.kind != Saved::TENSOR && s.kind != Saved::RESULT)) return incref(entry);
    if (PyFloat_CheckExact(entry) || PyLong_CheckExact(entry)) return incref(entry);
    if (!PyTuple_CheckExact(entry)) return nullptr;
    if (s.kind == Saved::RESULT)
        return PyObject_CallFunctionObjArgs(core.unpack_result, node, entry, nullptr);
    PyObject *tensor = PyTuple_GET_ITEM(entry, 0), *counter = slot(tensor, core.counter);
    PyObject *found = is_none(counter) ? zero : PyList_GET_ITEM(counter, 0);
    if (found != PyTuple_GET_ITEM(entry, 1)) return nullptr;
    return incref(tensor);
}

// What a rule gave: the gradient, perhaps as the only one of a sequence.
static PyObject *only(PyObject *stolen) {
    bool several = stolen && (PyTuple_CheckExact(stolen) || PyList_CheckExact(stolen));
    if (!several) return stolen;
    Ref held(stolen);
    return PySequence_Fast_GET_SIZE(stolen) == 1 ? incref(PySequence_Fast_GET_ITEM(stolen, 0))
                                                 : PyErr_Format(PyExc_ValueError, "expected one gradient");
}

static PyObject *gradient(Callable *f, PyObject *node, PyObject *grad, PyObject *place, PyObject *saved) {
    PyObject *rule = PyTuple_GET_ITEM(place, 0), *takes = PyTuple_GET_ITEM(place, 1);
    if (rule == one) return incref(grad);
    Py_ssize_t n = PyTuple_GET_SIZE(takes);
    Ref values(PyTuple_New(n));
    if (!values) return nullptr;
    for (Py_ssize_t i = 0; i < n; i++) {
        Py_ssize_t which = PyLong_AsSsize_t(PyTuple_GET_ITEM(takes, i));
        if (which < GRAD || which >= f->nsaved || which == NEEDS) return nullptr;
        PyObject *value = which == GRAD ? incref(grad)
                                        : unpack(f->saved[which], node, PyTuple_GET_ITEM(saved, which));
        if (!value) return nullptr;
        PyTuple_SET_ITEM(values.get(), i, value);
    }
    Ref factor(PyObject_Vectorcall(rule, &PyTuple_GET_ITEM(values.get(), 0), n, nullptr));
    if (!factor || PyTuple_GET_ITEM(place, 2) == Py_None) return only(factor.release());
    if (factor.get() == one) return incref(grad);
    static PyObject *less = PyLong_FromLong(-1);
    if (factor.get() == zero || factor.get() == less) return nullptr;  // the closure has shorter ways
    Ref chain(PyObject_GetAttr(core.late_bound, PyTuple_GET_ITEM(place, 2)));
    PyObject *factors[2] = {grad, factor.get()};
    return chain ? PyObject_Vectorcall(chain.get(), factors, 2, nullptr) : nullptr;
}

// `kernel` holds for each input, in the order in which their gradients are made, its rule, the places
// of that rule's parameters among the saved values, the name of the op that takes the gradient and
// what the rule gives, or None, and which input it is.
PyObject *call_apply(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    if (PyVectorcall_NARGS(nargsf) != 2 || names || !PyObject_TypeCheck(args[0], core.node))
        return fall_back(f, args, nargsf, names);
    PyObject *node = args[0], *dtype = slot(node, core.node_dtype);
    Ref saved(slot(node, core.saved)), edges(slot(node, core.edges));
    Py_XINCREF(saved.get());
    Py_XINCREF(edges.get());
    Py_ssize_t n = PyTuple_GET_SIZE(f->kernel);
    bool fits = saved && PyTuple_CheckExact(saved.get()) && edges && PyTuple_CheckExact(edges.get()) &&
                PyTuple_GET_SIZE(saved.get()) == f->nsaved && PyTuple_GET_SIZE(edges.get()) == n &&
                dtype && PyArray_DescrCheck(dtype);
    char kind = fits ? ((PyArray_Descr *)dtype)->kind : 0;
    for (Py_ssize_t i = 0; fits && i < n; i++) {
        PyObject *place = PyTuple_GET_ITEM(f->kernel, i), *rule = PyTuple_GET_ITEM(place, 0);
        fits = rule == one || rule == Py_None || PyCallable_Check(rule);
        fits = fits && (PyTuple_GET_ITEM(place, 2) == Py_None || (kind != 'c' && kind != 'W'));
    }
    if (!fits) return fall_back(f, args, nargsf, names);
    Ref produced(PyList_New(n));
    if (!produced) return nullptr;
    for (Py_ssize_t turn = 0; turn < n; turn++) {
        PyObject *place = PyTuple_GET_ITEM(f->kernel, turn), *rule = PyTuple_GET_ITEM(place, 0);
        Py_ssize_t i = PyLong_AsSsize_t(PyTuple_GET_ITEM(place, 3));
        PyObject *g = rule == Py_None || PyTuple_GET_ITEM(edges.get(), i) == Py_None
                          ? incref(Py_None)
                          : gradient(f, node, args[1], place, saved.get());
        if (!g) return PyErr_Occurred() ? nullptr : fall_back(f, args, nargsf, names);
        PyList_SET_ITEM(produced.get(), i, g);
    }
    return produced.release();
}

}  // namespace fast
