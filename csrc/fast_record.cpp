// Tensors, edges and nodes, made as core/tensor.py, core/op.py and core/graph.py make them.
#include "fast.h"

namespace fast {

PyObject *make_tensor(PyObject *array) {
    PyObject *tensor = core.tensor->tp_alloc(core.tensor, 0);
    if (!tensor) {
        Py_DECREF(array);
        return nullptr;
    }
    slot(tensor, core.array) = array;
    slot(tensor, core.base) = incref(Py_None);
    slot(tensor, core.counter) = incref(Py_None);
    slot(tensor, core.edge) = incref(Py_None);
    return tensor;
}

PyObject *as_array(PyObject *result) {
    if (!result || PyArray_CheckExact(result)) return result;
    PyObject *array = PyArray_FromAny(result, nullptr, 0, 0, NPY_ARRAY_ENSUREARRAY, nullptr);
    Py_DECREF(result);
    return array;
}

int grad_enabled() {
    PyObject *mode;
    if (PyContextVar_Get(core.grad_mode, nullptr, &mode) < 0) return -1;
    int on = mode == Py_True ? 1 : mode == Py_False ? 0 : PyObject_IsTrue(mode);
    Py_XDECREF(mode);
    return on;
}

// The version that the tensor's memory has now, as a new reference.
static PyObject *version_of(PyObject *tensor) {
    PyObject *counter = slot(tensor, core.counter);
    if (is_none(counter)) return incref(zero);
    return incref(PyList_GET_ITEM(counter, 0));
}

PyObject *edge_of(PyObject *tensor) {
    PyObject *edge = slot(tensor, core.edge);
    if (is_none(edge)) return incref(Py_None);
    if (edge == core.leaf) return incref(tensor);
    if (edge != core.lookup) return incref(edge);
    PyObject *view = slot(tensor, core.view_slot), *counter = slot(tensor, core.counter);
    if (view && counter && PyList_CheckExact(counter) && slot(view, core.view_node) &&
        slot(view, core.version) == PyList_GET_ITEM(counter, 0))
        return incref(slot(view, core.view_node));
    return PyObject_CallOneArg(core.gradient_edge, tensor);
}

bool is_floating(PyObject *array) {
    DType dtype = dtype_of(PyArray_TYPE((PyArrayObject *)array));
    if (dtype != NONE) return dtype >= F2;
    return PySet_Contains(core.floating, (PyObject *)PyArray_DESCR((PyArrayObject *)array)) == 1;
}

static PyObject *shape_of(PyObject *array) {
    PyArrayObject *a = (PyArrayObject *)array;
    PyObject *shape = PyTuple_New(PyArray_NDIM(a));
    for (int d = 0; shape && d < PyArray_NDIM(a); d++) {
        PyObject *n = PyLong_FromSsize_t(PyArray_DIM(a, d));
        if (!n) Py_CLEAR(shape);
        else PyTuple_SET_ITEM(shape, d, n);
    }
    return shape;
}

static PyObject *dtype_object(PyObject *array) {
    return incref((PyObject *)PyArray_DESCR((PyArrayObject *)array));
}

static bool is_tensor(PyObject *object) { return PyObject_TypeCheck(object, core.tensor); }

static PyObject *save_input(PyObject *object) {
    if (!is_tensor(object)) return incref(object);  // a number, or None
    if (Py_TYPE(slot(object, core.counter)) == core.untracked) {  // made in inference mode
        PyErr_SetString(PyExc_RuntimeError,
                        "Inference tensors cannot be saved for backward. Please do not use Tensors "
                        "created in inference mode in computation tracked by autograd. To work "
                        "around this, you can make a clone to get a normal tensor and use it in "
                        "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.");
        return nullptr;
    }
    PyObject *version = version_of(object);
    PyObject *entry = PyTuple_New(2);
    if (!entry) {
        Py_DECREF(version);
        return nullptr;
    }
    PyTuple_SET_ITEM(entry, 0, incref(object));
    PyTuple_SET_ITEM(entry, 1, version);
    return entry;
}

// Not the tensor, which holds the node (a cycle), but what makes it again.
static PyObject *save_result(PyObject *tensor) {
    PyObject *counter = counter_of(tensor);
    if (!counter) return nullptr;
    return PyTuple_Pack(4, slot(tensor, core.array), counter, PyList_GET_ITEM(counter, 0), zero);
}

static PyObject *save_each(PyObject *tensors, Py_ssize_t from, Saved::Kind kind) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(tensors) - from;
    PyObject *list = PyList_New(n > 0 ? n : 0);
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *tensor = PySequence_Fast_GET_ITEM(tensors, from + i);
        PyObject *array = slot(tensor, core.array);
        PyObject *entry = kind == Saved::TENSORS  ? save_input(tensor)
                          : kind == Saved::SHAPES ? shape_of(array)
                                                  : dtype_object(array);
        if (!entry) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, entry);
    }
    return list;
}

static PyObject *save(const Saved &s, PyObject *const *canonical, PyObject *edges, PyObject *result) {
    if (s.kind == Saved::RESULT) return save_result(result);
    if (s.kind >= Saved::TENSORS) return save_each(canonical[0], s.where, s.kind);
    PyObject *value = canonical[s.where];
    switch (s.kind) {
        case Saved::TENSOR: {
            bool used = s.users == ~uint64_t(0);
            for (Py_ssize_t i = 0; !used && i < PyTuple_GET_SIZE(edges); i++)
                used = (s.users >> i & 1) && PyTuple_GET_ITEM(edges, i) != Py_None;
            return used ? save_input(value) : incref(Py_None);
        }
        case Saved::SHAPE:
            return is_tensor(value) ? shape_of(slot(value, core.array)) : PyTuple_New(0);
        case Saved::DTYPE:
            return is_tensor(value) ? dtype_object(slot(value, core.array)) : incref(Py_None);
        default: return incref(value);
    }
}

// The node of a call that gave `result`; the caller has asked whether there is to be one.
int record(Callable *f, PyObject *const *canonical, PyObject *stolen_edges, PyObject *result) {
    Ref edges(stolen_edges), node(f->node->tp_alloc(f->node, 0));
    if (!node) return -1;
    stamp(node.get());
    PyObject *array = slot(result, core.array);
    PyObject *order = Py_TYPE(core.order)->tp_iternext(core.order), *shape = shape_of(array);
    slot(node.get(), core.node_order) = order;
    slot(node.get(), core.node_shape) = shape;
    slot(node.get(), core.node_dtype) = dtype_object(array);
    PyObject *saved = slot(node.get(), core.saved) = PyTuple_New(f->nsaved);
    if (!order || !shape || !saved) return -1;
    for (int i = 0; i < f->nsaved; i++) {
        PyObject *entry = save(f->saved[i], canonical, edges.get(), result);
        if (!entry) return -1;
        PyTuple_SET_ITEM(saved, i, entry);
    }
    slot(node.get(), core.edges) = edges.release();
    if (f->view && slot(result, core.base) != Py_None)
        set(slot(result, core.view_slot), core.view_node, node.release());
    else
        set(result, core.edge, node.release());
    return 0;
}

}  // namespace fast
