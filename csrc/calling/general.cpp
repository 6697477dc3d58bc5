// All other ops with a kernel, and composites: `make_call` of core/calling/call.py.
#include "calling/levels.h"
#include "calling/pointwise.h"
#include "kernels/moving/strided.h"

namespace fast {

static bool fits(Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    if (n > MAX_ARGS || n < (f->tensors < 0 ? 1 : f->tensors)) return false;
    PyObject *first = canonical[0];
    if (f->tensors < 0) return PyList_CheckExact(first) || PyTuple_CheckExact(first);
    PyObject *array = is_plain_tensor(first) ? slot(first, core.array) : nullptr;
    if (!array || !PyArray_Check(array)) return true;
    DType dtype = dtype_of(PyArray_TYPE((PyArrayObject *)array));
    return dtype != NONE && f->dtypes >> dtype & 1;  // of other types the closure knows more
}

// The kernel's result for canonical arguments; null without an error: not all tensors are plain.
static PyObject *run(Callable *f, PyObject *const *items, Py_ssize_t n) {
    int tensors = f->tensors < 0 ? 1 : f->tensors;
    PyObject *operands[MAX_ARGS];
    Ref held;  // keeps the arrays alive
    if (f->tensors < 0) {
        Py_ssize_t count = PySequence_Fast_GET_SIZE(items[0]);
        held.take(PyList_New(count));
        if (!held) return nullptr;
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *tensor = PySequence_Fast_GET_ITEM(items[0], i);
            if (!is_plain_tensor(tensor) || !slot(tensor, core.array)) return nullptr;
            PyList_SET_ITEM(held.get(), i, incref(slot(tensor, core.array)));
        }
        operands[0] = held.get();
    } else {
        held.take(PyTuple_New(tensors));
        if (!held) return nullptr;
        for (int i = 0; i < tensors; i++) {
            PyObject *array = items[i];
            if (array != Py_None || tensors == 1) {
                if (!is_plain_tensor(array) || !slot(array, core.array)) return nullptr;
                array = slot(array, core.array);
            }
            PyTuple_SET_ITEM(held.get(), i, incref(array));
            operands[i] = array;
        }
    }
    for (Py_ssize_t i = tensors; i < n; i++) operands[i] = items[i];
    PyObject *found = PyObject_Vectorcall(f->kernel, operands, n, nullptr);
    return is_none(f->returns) ? as_array(found) : found;
}

// A tensor on part of `parent`'s memory: `make_view`, after `replay_of`.
static PyObject *make_view(Callable *f, PyObject *parent, PyObject *stolen_array,
                           PyObject *const *canonical, Py_ssize_t n, PyObject *allowed) {
    static PyObject *no_grad = PyUnicode_InternFromString("no_grad");
    Ref result(make_tensor(stolen_array)), replay(incref(Py_None));
    if (!result) return nullptr;
    bool ask = f->replay;
    PyObject *made = allowed;
    if (slot(parent, core.edge) == core.lazy) {
        PyObject *view = slot(parent, core.view_slot);
        ask |= !view || slot(view, core.replay) != Py_None;
        if (view && slot(view, core.made) && PyUnicode_GET_LENGTH(made) == 0)
            made = slot(view, core.made);
    }
    if (ask && canonical) {
        Ref arguments(tuple_of(canonical, n));
        if (!arguments) return nullptr;
        replay.take(PyObject_CallFunctionObjArgs(core.replay_of, f->op, parent, arguments.get(), nullptr));
    }
    int recorded = grad_enabled();
    if (!replay || recorded < 0) return nullptr;
    PyObject *counter = counter_of(parent);
    if (!counter) return nullptr;
    if (Py_TYPE(counter) == core.untracked) {  // of inference mode, which remembers no base
        set(result.get(), core.counter, incref(counter));
        return result.release();
    }
    PyObject *view = core.view->tp_alloc(core.view, 0), *base = slot(parent, core.base);
    if (!view) return nullptr;
    slot(view, core.view_node) = incref(Py_None);
    PyObject *version = PyList_GET_ITEM(counter, 0);
    slot(view, core.version) = recorded ? incref(version) : PyNumber_Invert(version);
    slot(view, core.made) = incref(recorded ? made : no_grad);
    slot(view, core.replay) = replay.release();
    set(result.get(), core.counter, incref(counter));
    set(result.get(), core.base, incref(is_none(base) ? parent : base));
    set(result.get(), core.edge, incref(core.lazy));
    set(result.get(), core.view_slot, view);
    return result.release();
}

static int record_call(Callable *f, PyObject *const *items, PyObject *const *results,
                       Py_ssize_t count) {
    PyObject *const *inputs = items;
    Py_ssize_t n = f->tensors;
    if (n < 0) {
        inputs = PySequence_Fast_ITEMS(items[0]);
        n = PySequence_Fast_GET_SIZE(items[0]);
    }
    bool tracked = false;
    for (Py_ssize_t i = 0; i < n; i++)
        tracked |= inputs[i] != Py_None && !is_none(slot(inputs[i], core.edge));
    bool floating = false;
    for (Py_ssize_t i = 0; i < count; i++) floating |= is_floating(slot(results[i], core.array));
    if (!tracked || !f->differentiable || !floating) return 0;
    int recorded = grad_enabled();
    if (recorded <= 0) return recorded;
    Ref edges(PyTuple_New(n));
    if (!edges) return -1;
    recorded = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *edge = inputs[i] == Py_None ? incref(Py_None) : edge_of(inputs[i]);
        if (!edge) return -1;
        recorded |= edge != Py_None;
        PyTuple_SET_ITEM(edges.get(), i, edge);
    }
    if (!recorded) return 0;
    return is_none(f->returns) ? record(f, items, edges.release(), results[0])
                               : record_several(f, items, edges.release(), results, count);
}

// A tuple, a list or a named tuple of several results: what the kernel gave, as tensors.
static PyObject *finish_several(Callable *f, PyObject *const *canonical, PyObject *stolen_arrays) {
    static PyObject *several = PyUnicode_InternFromString("multi_output");
    Ref arrays(PySequence_Fast(stolen_arrays, "a kernel of several results gave one"));
    Py_DECREF(stolen_arrays);
    if (!arrays) return nullptr;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(arrays.get());
    PyTypeObject *type = (PyTypeObject *)f->returns;
    bool list = type == &PyList_Type;
    Ref results(list ? PyList_New(count) : type->tp_alloc(type, count));
    for (Py_ssize_t i = 0; results && i < count; i++) {
        PyObject *array = as_array(incref(PySequence_Fast_GET_ITEM(arrays.get(), i)));
        PyObject *each = !array    ? nullptr
                         : f->view ? make_view(f, canonical[0], array, nullptr, 0, several)
                                   : make_tensor(array);
        if (!each) return nullptr;
        if (list) PyList_SET_ITEM(results.get(), i, each);
        else PyTuple_SET_ITEM(results.get(), i, each);
    }
    if (!results || record_call(f, canonical, PySequence_Fast_ITEMS(results.get()), count) < 0)
        return nullptr;
    return results.release();
}

PyObject *finish(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *stolen) {
    static PyObject *allowed = PyUnicode_InternFromString("");
    if (!is_none(f->returns)) return finish_several(f, canonical, stolen);
    Ref result;
    if (f->view && (PyArray_BASE((PyArrayObject *)stolen) ||
                    stolen == slot(canonical[0], core.array)))
        result.take(make_view(f, canonical[0], stolen, canonical, n, allowed));
    else
        result.take(make_tensor(stolen));
    PyObject *one = result.get();
    if (!one || record_call(f, canonical, &one, 1) < 0) return nullptr;
    return result.release();
}

PyObject *compute(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyArrayObject *into) {
    if (f->pointwise) return compute_pointwise(f, canonical, n, into);
    return fits(f, canonical, n) ? run(f, canonical, n) : nullptr;
}

PyObject *call_plain(Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    if (f->pointwise) return run_pointwise(f, canonical, n);
    if (!fits(f, canonical, n)) return nullptr;
    PyObject *given = run(f, canonical, n);
    if (given) return finish(f, canonical, n, given);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(moving::Misfit)) PyErr_Clear();
    return nullptr;
}

PyObject *call_canonical(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Callable *f = (Callable *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (watched() || names) {
        PyObject *result = names ? nullptr : call_in_levels(f, args, n);
        return result || PyErr_Occurred() ? result : fall_back(f, args, nargsf, names);
    }
    PyObject *result = call_plain(f, args, n);
    return result || PyErr_Occurred() ? result : fall_back(f, args, nargsf, names);
}

bool are_passive(PyObject *const *values, Py_ssize_t n, bool slices, int depth) {
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = values[i];
        if (Py_TYPE(x) == core.tensor || PySet_Contains(core.passive, (PyObject *)Py_TYPE(x)) == 1 ||
            (slices && is_slice(x)))
            continue;
        bool listed = PyList_CheckExact(x) || PyTuple_CheckExact(x);
        if (listed ? !depth || !are_passive(PySequence_Fast_ITEMS(x), PySequence_Fast_GET_SIZE(x), slices,
                                          depth - 1)
                   : PySet_Contains(core.plain, (PyObject *)Py_TYPE(x)) != 1)
            return false;
    }
    return true;
}

}  // namespace fast
