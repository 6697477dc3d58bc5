// Tensors, edges and nodes, made as core/tensor.py and core/autograd/ make them.
#include "kernels/moving/strided.h"
#include "tensors.h"

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

PyObject *own_edge(PyObject *tensor) {
    PyObject *edge = slot(tensor, core.edge);
    return incref(is_none(edge) ? Py_None : edge == core.leaf ? tensor : edge);
}

PyObject *edge_of(PyObject *tensor) {
    if (slot(tensor, core.edge) != core.lazy) return own_edge(tensor);
    PyObject *view = slot(tensor, core.view_slot), *counter = slot(tensor, core.counter);
    if (view && counter && PyList_CheckExact(counter) && slot(view, core.view_node) &&
        slot(view, core.version) == PyList_GET_ITEM(counter, 0))
        return incref(slot(view, core.view_node));
    PyObject *renewed = renew(tensor);
    return renewed || PyErr_Occurred() ? renewed : PyObject_CallOneArg(core.gradient_edge, tensor);
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

// Does a matrix lie in memory column by column? All dimensions but the last are its rows.
static bool is_by_columns(PyObject *array) {
    PyArrayObject *a = (PyArrayObject *)array;
    npy_intp step = PyArray_ITEMSIZE(a);
    int last = PyArray_NDIM(a) - 1;
    for (int d = last - 1; d >= 0; d--) {
        if (PyArray_STRIDE(a, d) != step && (last == 1 || PyArray_DIM(a, d) != 1)) return false;
        step *= PyArray_DIM(a, d);
    }
    return last > 0 && PyArray_STRIDE(a, last) == step;
}

static PyObject *dtype_object(PyObject *array) {
    return incref((PyObject *)PyArray_DESCR((PyArrayObject *)array));
}

static bool is_tensor(PyObject *object) { return PyObject_TypeCheck(object, core.tensor); }

// May the graph keep a tensor? Not one that was made in inference mode.
static int may_save(PyObject *object) {
    if (!is_tensor(object) || Py_TYPE(slot(object, core.counter)) != core.untracked) return 0;
    PyObject *deriving;
    if (PyContextVar_Get(core.deriving, nullptr, &deriving) < 0) return -1;
    Py_DECREF(deriving);
    if (deriving == Py_True) return 0;
    PyErr_SetString(PyExc_RuntimeError,
                    "Inference tensors cannot be saved for backward. Please do not use "
                    "Tensors created in inference mode in computation tracked by autograd. "
                    "To work around this, you can make a clone to get a normal tensor and "
                    "use it in autograd, or use `torch.no_grad()` instead of "
                    "`torch.inference_mode()`.");
    return -1;
}

static PyObject *save_input(PyObject *object) {
    if (!is_tensor(object)) return incref(object);  // a number, or None
    if (may_save(object) < 0) return nullptr;
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
static PyObject *save_result(PyObject *tensor, int which) {
    PyObject *counter = counter_of(tensor);
    Ref place(PyLong_FromLong(which));
    if (!counter || !place) return nullptr;
    return PyTuple_Pack(4, slot(tensor, core.array), counter, PyList_GET_ITEM(counter, 0),
                        place.get());
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

// Is a saved tensor one that a rule needs for inputs that require a gradient?
static bool is_used(const Saved &s, PyObject *edges) {
    bool used = s.users == ~uint64_t(0);
    for (Py_ssize_t i = 0; !used && i < PyTuple_GET_SIZE(edges); i++)
        used = (s.users >> i & 1) && PyTuple_GET_ITEM(edges, i) != Py_None;
    return used;
}

int check_saving(Callable *f, PyObject *const *canonical, PyObject *edges) {
    for (int i = 0; i < f->nsaved; i++) {
        const Saved &s = f->saved[i];
        if (s.kind == Saved::TENSOR && is_used(s, edges) && may_save(canonical[s.where]) < 0) return -1;
    }
    return 0;
}

static PyObject *save(const Saved &s, PyObject *const *canonical, PyObject *edges,
                      PyObject *const *results) {
    if (s.kind == Saved::RESULT) return save_result(results[s.where], s.where);
    if (s.kind >= Saved::TENSORS) return save_each(canonical[0], s.where, s.kind);
    PyObject *value = canonical[s.where];
    switch (s.kind) {
        case Saved::TENSOR: return is_used(s, edges) ? save_input(value) : incref(Py_None);
        case Saved::SHAPE:
            return is_tensor(value) ? shape_of(slot(value, core.array)) : PyTuple_New(0);
        case Saved::DTYPE:
            return is_tensor(value) ? dtype_object(slot(value, core.array)) : incref(Py_None);
        case Saved::BY_COLUMNS:
            return PyBool_FromLong(is_tensor(value) && is_by_columns(slot(value, core.array)));
        case Saved::GEOMETRY: {
            static PyObject *name = PyUnicode_InternFromString("geometry");
            PyObject *array = is_plain_tensor(value) ? slot(value, core.array) : nullptr;
            PyObject *found = array && PyArray_CheckExact(array)
                                  ? moving::geometry_of((PyArrayObject *)array) : nullptr;
            if (found || PyErr_Occurred()) return found;
            return PyObject_CallMethodOneArg(core.late_bound, name, value);
        }
        default: return incref(value);
    }
}

// A node with its number, edges and saved values, but not yet what it knows of its results.
static PyObject *make_node(Callable *f, PyObject *const *canonical, PyObject *stolen_edges,
                           PyObject *const *results) {
    Ref edges(stolen_edges), node(f->node->tp_alloc(f->node, 0));
    if (!node) return nullptr;
    stamp(node.get());
    PyObject *order = Py_TYPE(core.order)->tp_iternext(core.order);
    slot(node.get(), core.node_order) = order;
    PyObject *saved = slot(node.get(), core.saved) = PyTuple_New(f->nsaved);
    if (!order || !saved) return nullptr;
    for (int i = 0; i < f->nsaved; i++) {
        PyObject *entry = save(f->saved[i], canonical, edges.get(), results);
        if (!entry) return nullptr;
        PyTuple_SET_ITEM(saved, i, entry);
    }
    slot(node.get(), core.edges) = edges.release();
    return node.release();
}

// Of which result gradients arrive at `edge`: a view's history is its view's.
static void attach(Callable *f, PyObject *result, PyObject *stolen_edge) {
    if (f->view && slot(result, core.base) != Py_None)
        set(slot(result, core.view_slot), core.view_node, stolen_edge);
    else
        set(result, core.edge, stolen_edge);
}

// Of a node with one result: its shape and its type.
static int describe_result(PyObject *node, PyObject *result) {
    PyObject *array = slot(result, core.array);
    slot(node, core.node_shape) = shape_of(array);
    slot(node, core.node_dtype) = dtype_object(array);
    return slot(node, core.node_shape) ? 0 : -1;
}

// Hooks of saved tensors, if there are any, replace what a node has just saved.
static int pack(PyObject *node) {
    static PyObject *name = PyUnicode_InternFromString("pack_node");
    if (!PyList_GET_SIZE(core.saved_tensor_hooks)) return 0;
    return Ref(PyObject_CallMethodOneArg(core.late_bound, name, node)) ? 0 : -1;
}

// The node of a call that gave `result`; the caller has asked whether there is to be one.
int record(Callable *f, PyObject *const *canonical, PyObject *stolen_edges, PyObject *result) {
    PyObject *node = make_node(f, canonical, stolen_edges, &result);
    if (!node) return -1;
    int failed = describe_result(node, result);
    attach(f, result, node);
    return failed ? failed : pack(node);
}

// The edge to the `i`-th of several results.
static PyObject *output_of(PyObject *node, Py_ssize_t i, PyObject *shape, PyObject *dtype) {
    Ref index(PyLong_FromSsize_t(i));
    PyObject *arguments[] = {node, index.get(), shape, dtype};
    return index ? PyObject_Vectorcall(core.output, arguments, 4, nullptr) : nullptr;
}

int record_several(Callable *f, PyObject *const *canonical, PyObject *stolen_edges,
                   PyObject *const *results, Py_ssize_t n) {
    static PyObject *outputs = PyUnicode_InternFromString("outputs"),
                    *simple = PyUnicode_InternFromString("simple"),
                    *geometry = PyUnicode_InternFromString("results");
    Ref node(make_node(f, canonical, stolen_edges, results));
    Ref count(PyLong_FromSsize_t(n)), all(PyList_New(n));
    if (!node || !count || !all) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *array = slot(results[i], core.array);
        Ref shape(shape_of(array)), dtype(dtype_object(array));
        PyObject *pair = shape ? PyTuple_Pack(2, shape.get(), dtype.get()) : nullptr;
        if (!pair) return -1;
        PyList_SET_ITEM(all.get(), i, pair);
        if (!is_floating(array) || !(f->results >> (i < 63 ? i : 63) & 1)) continue;
        if (n == 1) {
            slot(node.get(), core.node_shape) = shape.release();
            slot(node.get(), core.node_dtype) = dtype.release();
            attach(f, results[i], incref(node.get()));
            continue;
        }
        PyObject *edge = output_of(node.get(), i, shape.get(), dtype.get());
        if (!edge) return -1;
        attach(f, results[i], edge);
    }
    if (PyObject_SetAttr(node.get(), outputs, count.get()) < 0 ||
        PyObject_SetAttr(node.get(), simple, n == 1 ? Py_True : Py_False) < 0 ||
        PyObject_SetAttr(node.get(), geometry, all.get()) < 0)
        return -1;
    return pack(node.get());
}

// ---- writes ---------------------------------------------------------------------------------------
// `rebase` and `regenerate` of core/views.py, where strides tell what part of
// its base a view is.

static bool is_true(PyObject *object, PyObject *name) {
    Ref value(PyObject_GetAttr(object, name));
    return !value || PyObject_IsTrue(value.get());
}

static bool retains_grad(PyObject *tensor) {
    static PyObject *name = PyUnicode_InternFromString("_retains_grad");
    return is_true(tensor, name);
}

static PyArrayObject *array_of(PyObject *tensor) {
    PyObject *array = is_plain_tensor(tensor) ? slot(tensor, core.array) : nullptr;
    return array && PyArray_CheckExact(array) && is_floating(array) ? (PyArrayObject *)array : nullptr;
}

// Is a view a window on the memory of its base, of the same type, to which nothing else applies?
static bool is_window(PyObject *tensor) {
    PyObject *base = slot(tensor, core.base), *view = slot(tensor, core.view_slot);
    if (is_none(base) || !view || slot(view, core.view_node) == core.leaf ||
        !is_none(slot(view, core.replay)) || PyUnicode_GET_LENGTH(slot(view, core.made)))
        return false;
    long version = PyLong_AsLong(slot(view, core.version));  // below STALE: not found, but set
    PyArrayObject *own = array_of(tensor), *whole = array_of(base);
    return version >= -1 && own && whole && PyArray_DESCR(own) == PyArray_DESCR(whole) &&
           PyArray_SIZE(own) && PyArray_ITEMSIZE(own) && !PyArray_BASE(moving::root_of(own)) &&
           slot(base, core.edge) != core.lazy;
}

bool may_rebase(PyObject *tensor) {
    PyObject *edge = slot(tensor, core.edge), *base = slot(tensor, core.base);
    if (edge == core.leaf || !is_floating(slot(tensor, core.array)) || retains_grad(tensor)) return false;
    if (edge != core.lazy) return is_none(base);
    if (!is_window(tensor) || slot(base, core.edge) == core.leaf || retains_grad(base)) return false;
    return !is_none(slot(base, core.edge)) || is_none(slot(slot(tensor, core.view_slot), core.view_node));
}

// What a CopySlices saves: the node that wrote, strides of the base, None (no replay), extents and
// strides of the view, its offset.
static PyObject *slices_saved(PyObject *inner, PyObject *tensor) {
    PyArrayObject *own = array_of(tensor), *whole = array_of(slot(tensor, core.base));
    Ref geometry(moving::geometry_of(own)), around(moving::geometry_of(whole));
    if (!geometry || !around) return nullptr;
    npy_intp offset = (PyArray_BYTES(own) - PyArray_BYTES(whole)) / PyArray_ITEMSIZE(own);
    return Py_BuildValue("OOOOOn", inner, PyTuple_GET_ITEM(around.get(), 1), Py_None,
                         PyTuple_GET_ITEM(geometry.get(), 0), PyTuple_GET_ITEM(geometry.get(), 1), offset);
}

// Give a base, to a part of which `inner` has written, a node; the first edge is its old history.
static int rebase(PyObject *tensor, PyObject *inner) {
    static PyObject *some = PyUnicode_InternFromString("differentiated"),
                    *stale = PyLong_FromLong(-1);
    PyObject *base = slot(tensor, core.base), *edges = slot(inner, core.edges);
    Ref node(core.slices->tp_alloc(core.slices, 0)), saved(slices_saved(inner, tensor));
    Ref all(tuple_of(&PyTuple_GET_ITEM(edges, 0), PyTuple_GET_SIZE(edges)));
    Ref differentiated(PyObject_GetAttr(inner, some));
    if (!node || !saved || !all || !differentiated || describe_result(node.get(), base) < 0) return -1;
    stamp(node.get());
    PyTuple_SetItem(all.get(), 0, own_edge(base));
    slot(node.get(), core.edges) = all.release();
    slot(node.get(), core.saved) = saved.release();
    slot(node.get(), core.node_order) = Py_TYPE(core.order)->tp_iternext(core.order);
    if (!slot(node.get(), core.node_order) ||
        (differentiated.get() != Py_None && PyObject_SetAttr(node.get(), some, differentiated.get()) < 0))
        return -1;
    set(base, core.edge, node.release());
    set(slot(tensor, core.view_slot), core.version, incref(stale));
    return 0;
}

// The class of nodes of an op's in-place form, where it has another name.
static int rename(Callable *f, PyObject *node) {
    static PyObject *name = PyUnicode_InternFromString("inplace_node"),
                    *known = PyUnicode_InternFromString("known_as"),
                    *type = PyUnicode_InternFromString("__class__");
    Ref given(PyObject_GetAttr(f->op, name));
    if (!given || !PyObject_IsTrue(given.get())) return given ? 0 : -1;
    PyObject *arguments[] = {core.late_bound, (PyObject *)f->node, given.get()};
    Ref renamed(PyObject_VectorcallMethod(known, arguments, 3, nullptr));
    return renamed ? PyObject_SetAttr(node, type, renamed.get()) : -1;
}

int record_write(Callable *f, PyObject *const *canonical, PyObject *stolen_edges, PyObject *tensor) {
    Ref node(make_node(f, canonical, stolen_edges, &tensor));
    if (!node || describe_result(node.get(), tensor) < 0 || rename(f, node.get()) < 0) return -1;
    if (slot(tensor, core.edge) == core.lazy) return rebase(tensor, node.get());
    set(tensor, core.edge, node.release());
    return 0;
}

// The op whose node a view gets after a write: told by Python when it is first needed.
static Callable *as_strided() {
    static PyObject *found = nullptr;
    if (!found) {
        Ref function(PyObject_GetAttrString(core.late_bound, "as_strided"));
        Ref op(function ? PyObject_GetAttrString(function.get(), "op") : nullptr);
        found = op ? PyObject_GetAttrString(op.get(), "call") : nullptr;
    }
    return found && Py_TYPE(found) == &CallableType ? (Callable *)found : nullptr;
}

PyObject *renew(PyObject *tensor) {
    PyObject *counter = slot(tensor, core.counter), *base = slot(tensor, core.base);
    if (watched_or_packed() || !counter || !PyList_CheckExact(counter) || !is_window(tensor) ||
        retains_grad(tensor))
        return nullptr;
    PyObject *view = slot(tensor, core.view_slot), *version = PyList_GET_ITEM(counter, 0);
    Ref edge(own_edge(base));
    if (edge.get() == Py_None) {
        set(view, core.view_node, incref(Py_None));
    } else {
        Callable *f = as_strided();
        Ref geometry(f ? moving::geometry_of(array_of(tensor)) : nullptr);
        if (!geometry) return nullptr;
        PyObject **items = &PyTuple_GET_ITEM(geometry.get(), 0);
        PyObject *canonical[] = {base, items[0], items[1], items[2]};
        Ref edges(PyTuple_Pack(1, edge.get()));
        if (!edges || record(f, canonical, edges.release(), tensor) < 0) return nullptr;
    }
    set(view, core.version, incref(version));
    return incref(slot(view, core.view_node));
}

}  // namespace fast
