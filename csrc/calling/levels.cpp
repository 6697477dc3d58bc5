// The twin of `BatchLevel.__call__` and `batch` in `flambeau/transforms/batching.py`, for ops of which
// a declaration says how they are batched; all else is handed to these.
#include "calling/levels.h"

#include <vector>

namespace fast {

Deriving deriving;

// How an op is batched, read once from its declaration.
struct Batching {
    enum Way : int8_t { BROADCAST, SHIFT, RULE, ASK } way;  // ASK: Python's `batch` knows
    PyObject *rule;              // of a RULE
    PyObject *parts;             // the same made of other ops; None: it has none
    std::vector<int8_t> ranks;   // BROADCAST: how many dimensions of each tensor do not broadcast
    std::vector<int8_t> moves;   // SHIFT: for each parameter whether it is dimensions (1), a shape (2)
    bool has_dims, pointwise, one_type, shows_memory, saves_result;
    uint64_t apart;              // of a pointwise op: operands whose type does not count
};

void free_batching(Batching *b) {
    if (!b) return;
    Py_XDECREF(b->rule), Py_XDECREF(b->parts);
    delete b;
}

static PyObject *name_value, *name_bdim, *name_level, *name_device, *name_made_from, *name_history,
    *name_history_of_base, *name_size, *name_rewritten, *name_result_state, *name_node;

// ---- who watches --------------------------------------------------------------------------------

// The value of a context variable, borrowed: somebody else holds it.
static PyObject *value_of(PyObject *variable) {
    PyObject *found = nullptr;
    if (PyContextVar_Get(variable, nullptr, &found) < 0) PyErr_Clear();
    Py_XDECREF(found);
    return found;
}

static bool is_empty(PyObject *tuple) {
    return tuple && PyTuple_CheckExact(tuple) && !PyTuple_GET_SIZE(tuple);
}

// Do all that watch say so in context variables? A tracer of another kind sees all threads.
static bool all_in_context() {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(core.interceptors); i++) {
        PyObject *one = PyList_GET_ITEM(core.interceptors, i);
        if (!is_scope(one) && !PyType_Check(one)) return false;
    }
    return true;
}

static bool nothing_but_levels() {
    return all_in_context() && is_empty(value_of(deriving.function_modes)) &&
           value_of(deriving.autocast) == Py_None;
}

bool sees_calls() {
    return !deriving.slice || !is_empty(value_of(deriving.levels)) || !nothing_but_levels();
}

PyObject *only_deriving() {
    if (!deriving.slice || PyList_GET_SIZE(core.saved_tensor_hooks) || PyList_GET_SIZE(core.node_watchers) ||
        !nothing_but_levels())
        return nullptr;
    Ref stack(value_of(deriving.levels));
    Py_XINCREF(stack.get());
    if (!stack || !PyTuple_CheckExact(stack.get()) || !PyTuple_GET_SIZE(stack.get())) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(stack.get()); i++) {
        PyTypeObject *type = Py_TYPE(PyTuple_GET_ITEM(stack.get(), i));
        if (type != deriving.batch && type != deriving.forward) return nullptr;
    }
    return stack.release();
}

bool all_passive(PyObject *const *args, Py_ssize_t n) {
    bool slices = intercepted();
    return (!slices || Ref(only_deriving())) && are_passive(args, n, slices);
}

// ---- what a declaration says --------------------------------------------------------------------

// None for what is not said.
static PyObject *said(Callable *f, const char *name) {
    PyObject *found = PyObject_GetAttrString(f->op, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return incref(Py_None);
}

static bool is_true(PyObject *stolen) {
    Ref held(stolen);
    return stolen && PyObject_IsTrue(stolen) == 1;
}

static bool names(PyObject *list, PyObject *name) {
    return list != Py_None && PySequence_Contains(list, name) == 1;
}

static Batching *read_batching(Callable *f) {
    Batching *b = new Batching();
    Ref rule(said(f, "batch_rule")), core_shapes(said(f, "core")), params(said(f, "params")),
        dims(said(f, "dims")), shapes(said(f, "shapes"));
    b->parts = said(f, "parts");
    if (!rule || !core_shapes || !params || !dims || !shapes || !b->parts) return free_batching(b), nullptr;
    b->pointwise = f->pointwise, b->shows_memory = f->view || is_true(said(f, "shares"));
    b->one_type = is_true(said(f, "fixed")), b->apart = uint64_t(f->apart);
    for (int i = 0; i < f->nsaved; i++) b->saves_result |= f->saved[i].kind == Saved::RESULT;
    if (rule.get() != Py_None) {
        b->way = Batching::RULE, b->rule = rule.release();
    } else if (f->pointwise || (PyObject_IsTrue(core_shapes.get()) && f->tensors > 0)) {
        Ref ranks(PyObject_CallFunction(deriving.ranks, "Oi", f->op, f->tensors));
        Ref all(ranks ? PySequence_Fast(ranks.get(), "ranks") : nullptr);
        if (!all) return free_batching(b), nullptr;
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); i++)
            b->ranks.push_back(int8_t(PyLong_AsLong(PySequence_Fast_GET_ITEM(all.get(), i))));
        b->way = int(b->ranks.size()) == f->tensors ? Batching::BROADCAST : Batching::ASK;
    } else if (PyTuple_Check(params.get()) && (PyObject_IsTrue(dims.get()) || PyObject_IsTrue(shapes.get()))) {
        b->way = Batching::SHIFT, b->has_dims = PyObject_IsTrue(dims.get());
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(params.get()); i++) {
            PyObject *name = PyTuple_GET_ITEM(params.get(), i);
            b->moves.push_back(names(dims.get(), name) ? 1 : names(shapes.get(), name) ? 2 : 0);
        }
    } else {
        b->way = Batching::ASK;
    }
    return b;
}

// ---- slices -------------------------------------------------------------------------------------

// What an object's own dictionary has; borrowed, or null.
static PyObject *field(PyObject *object, PyObject *name) {
    Ref dict(PyObject_GenericGetDict(object, nullptr));
    return dict ? PyDict_GetItemWithError(dict.get(), name) : nullptr;
}

static PyArrayObject *array_of(PyObject *tensor) { return (PyArrayObject *)slot(tensor, core.array); }

// An array in the shape of one slice, of zeros that take no memory.
static PyObject *slice_array(PyArrayObject *whole, int bdim) {
    static PyObject *zeros = nullptr;
    constexpr npy_intp extent = 1 << 12;
    npy_intp shape[NPY_MAXDIMS], count = 1;
    int n = 0;
    for (int d = 0; d < PyArray_NDIM(whole); d++)
        if (d != bdim) count *= shape[n++] = PyArray_DIM(whole, d);
    PyArray_Descr *type = PyArray_DESCR(whole);
    if (count * PyDataType_ELSIZE(type) > extent) {
        Ref sizes(PyTuple_New(n));
        for (int d = 0; sizes && d < n; d++)
            PyTuple_SET_ITEM(sizes.get(), d, PyLong_FromSsize_t(shape[d]));
        PyObject *args[] = {sizes.get(), (PyObject *)type};
        return sizes ? PyObject_Vectorcall(deriving.hollow, args, 2, nullptr) : nullptr;
    }
    npy_intp length = extent;
    if (!zeros && !(zeros = PyArray_ZEROS(1, &length, NPY_BYTE, 0))) return nullptr;
    Py_INCREF(type);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, type, n, shape, nullptr,
                                           PyArray_DATA((PyArrayObject *)zeros), 0, nullptr);
    if (array && PyArray_SetBaseObject((PyArrayObject *)array, incref(zeros)) < 0) Py_CLEAR(array);
    return array;
}

// One slice of `value` along `bdim` (-1: the same for all).
static PyObject *wrap(PyObject *level, PyObject *value, int bdim) {
    Ref array(slice_array(array_of(value), bdim));
    Ref where(bdim < 0 ? incref(Py_None) : PyLong_FromLong(bdim));
    PyObject *tensor = array && where ? deriving.slice->tp_alloc(deriving.slice, 0) : nullptr;
    Ref result(tensor);
    if (!tensor) return nullptr;
    slot(tensor, core.array) = array.release();
    slot(tensor, core.base) = incref(Py_None);
    slot(tensor, core.counter) = incref(Py_None);
    slot(tensor, core.edge) = incref(Py_None);
    Ref dict(PyObject_GenericGetDict(tensor, nullptr)), device(PyObject_GetAttr(value, name_device));
    if (!dict || PyDict_SetItem(dict.get(), name_value, value) < 0 ||
        PyDict_SetItem(dict.get(), name_bdim, where.get()) < 0 ||
        PyDict_SetItem(dict.get(), name_level, level) < 0)
        return nullptr;
    if (!device || (device.get() != core.cpu && PyDict_SetItem(dict.get(), name_device, device.get()) < 0))
        return nullptr;
    return result.release();
}

PyObject *whole_of(PyObject *slice) {
    PyObject *value = field(slice, name_value);
    Py_XINCREF(value);
    return value;
}

PyObject *slice_like(PyObject *slice, PyObject *whole) {
    PyObject *level = field(slice, name_level), *bdim = field(slice, name_bdim);
    return level && bdim ? wrap(level, whole, bdim == Py_None ? -1 : int(PyLong_AsLong(bdim))) : nullptr;
}

// ---- the arguments of the call on the whole -----------------------------------------------------

static PyObject *call_on(PyObject *function, PyObject *x, PyObject *stolen_y, PyObject *stolen_z = nullptr) {
    Ref y(stolen_y), z(stolen_z);
    PyObject *args[] = {x, y.get(), z.get()};
    return y ? PyObject_Vectorcall(function, args, z ? 3 : 2, nullptr) : nullptr;
}

static PyObject *to_front(PyObject *value, int bdim) {
    return bdim ? call_on(deriving.movedim, value, PyLong_FromLong(bdim), PyLong_FromLong(0)) : incref(value);
}

// The extents of `value`, after `first`, if that is not negative, and `ones` after its own first.
static PyObject *extents(PyObject *value, Py_ssize_t first, int ones) {
    PyArrayObject *a = array_of(value);
    int n = PyArray_NDIM(a), at = 0;
    PyObject *shape = PyTuple_New(n + ones + (first >= 0));
    if (!shape) return nullptr;
    if (first >= 0) PyTuple_SET_ITEM(shape, at++, PyLong_FromSsize_t(first));
    for (int d = 0; d < n; d++) {
        PyTuple_SET_ITEM(shape, at++, PyLong_FromSsize_t(PyArray_DIM(a, d)));
        for (int i = 0; !d && i < ones; i++) PyTuple_SET_ITEM(shape, at++, PyLong_FromLong(1));
    }
    return shape;
}

// What a level knows of a call's tensor arguments.
struct Inputs {
    Py_ssize_t count;
    PyObject *const *items;
    std::vector<PyObject *> values;  // borrowed from the slices, which the caller holds
    std::vector<int> dims;           // -1: the same for all
    std::vector<char> mine;
    bool any_mine = false, any_dim = false;

    // False without an error: a tensor of another kind.
    bool take(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *level) {
        if (f->tensors < 0) {
            if (!n || !(PyTuple_CheckExact(canonical[0]) || PyList_CheckExact(canonical[0]))) return false;
            count = PySequence_Fast_GET_SIZE(canonical[0]), items = PySequence_Fast_ITEMS(canonical[0]);
        } else {
            if (n < f->tensors) return false;
            count = f->tensors, items = canonical;
        }
        values.assign(items, items + count), dims.assign(count, -1), mine.assign(count, 0);
        for (Py_ssize_t i = 0; i < count; i++) {
            PyObject *x = items[i];
            if (!is_slice(x)) {
                if (PyObject_TypeCheck(x, core.tensor) && !is_plain_tensor(x)) return false;
                continue;
            }
            if (field(x, name_level) != level) continue;
            PyObject *value = field(x, name_value), *bdim = field(x, name_bdim);
            if (!value || !bdim) return false;
            values[i] = value, mine[i] = 1, any_mine = true;
            if (bdim != Py_None) dims[i] = int(PyLong_AsLong(bdim)), any_dim = true;
        }
        return true;
    }

    bool is_tensor(Py_ssize_t i) const { return PyObject_TypeCheck(items[i], core.tensor); }
    int ndim(Py_ssize_t i) const { return PyArray_NDIM(array_of(items[i])); }
};

// The call of the op with other tensors, where `rest` are all canonical arguments.
static PyObject *call_with(Callable *f, PyObject *const *tensors, Py_ssize_t count,
                           PyObject *const *rest, Py_ssize_t n) {
    PyObject *args[MAX_ARGS];
    Ref list;
    Py_ssize_t at = f->tensors;
    if (f->tensors < 0) {
        list.take(tuple_of(tensors, count));
        if (!list) return nullptr;
        args[0] = list.get(), at = 1;
    } else {
        for (Py_ssize_t i = 0; i < count; i++) args[i] = tensors[i];
    }
    for (; at < n; at++) args[at] = rest[at];
    return PyObject_Vectorcall((PyObject *)f, args, n, nullptr);
}

struct Held {
    std::vector<PyObject *> items;
    ~Held() { for (PyObject *item : items) Py_XDECREF(item); }
    PyObject *keep(PyObject *stolen) { items.push_back(stolen); return stolen; }
};

// Leading dimensions that broadcast; null without an error: the operands are of several types.
static PyObject *broadcast(Callable *f, const Batching *b, const Inputs &in, PyObject *const *canonical,
                           Py_ssize_t n) {
    int lead = 0;
    PyArray_Descr *type = nullptr;
    for (Py_ssize_t i = 0; i < in.count; i++) {
        if (!in.is_tensor(i)) continue;
        if (in.ndim(i) - b->ranks[i] > lead) lead = in.ndim(i) - b->ranks[i];
        if (!b->pointwise || b->one_type || b->apart >> i & 1) continue;
        PyArray_Descr *own = PyArray_DESCR(array_of(in.items[i]));
        if (type && own != type && own->type_num != type->type_num) return nullptr;
        type = own;
    }
    Held held;
    std::vector<PyObject *> aligned(in.values);
    for (Py_ssize_t i = 0; i < in.count; i++) {
        if (in.dims[i] < 0) continue;
        if (in.dims[i] && !(aligned[i] = held.keep(to_front(aligned[i], in.dims[i])))) return nullptr;
        int missing = lead + b->ranks[i] + 1 - PyArray_NDIM(array_of(aligned[i]));
        if (missing > 0 && !(aligned[i] = held.keep(call_on(
                deriving.reshape, aligned[i], extents(aligned[i], -1, missing)))))
            return nullptr;
    }
    return call_with(f, aligned.data(), in.count, canonical, n);
}

// A dimension, or several, one further; None are all.
static PyObject *shifted(PyObject *dims, int ndim) {
    if (PyLong_CheckExact(dims)) return PyLong_FromLong(PyLong_AsLong(dims) + 1);
    bool all = dims == Py_None;
    if (!all && !PyTuple_Check(dims) && !PyList_Check(dims))
        return PyErr_Format(PyExc_TypeError, "%R are no dimensions", dims);
    Py_ssize_t n = all ? ndim : PySequence_Fast_GET_SIZE(dims);
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        long d = all ? long(i) : PyLong_AsLong(PySequence_Fast_GET_ITEM(dims, i));
        PyTuple_SET_ITEM(result, i, PyLong_FromLong(d + 1));
    }
    return result;
}

// Slices in front, dimensions one further; null without an error: slices without dimensions.
static PyObject *shift(Callable *f, const Batching *b, const Inputs &in, PyObject *const *canonical,
                       Py_ssize_t n, Py_ssize_t size) {
    int ndim = -1;
    for (Py_ssize_t i = 0; i < in.count; i++) {
        if (in.items[i] == Py_None) continue;
        if (!in.is_tensor(i) || (b->has_dims && !in.ndim(i))) return nullptr;
        if (ndim < 0) ndim = in.ndim(i);
    }
    Py_ssize_t first = f->tensors < 0 ? 1 : f->tensors;
    if (ndim < 0 || n != first + Py_ssize_t(b->moves.size())) return nullptr;
    PyObject *args[MAX_ARGS];
    Held held;
    for (Py_ssize_t i = 0; i < n; i++) {
        args[i] = canonical[i];
        int move = i < first ? 0 : b->moves[i - first];
        if (move == 1) {
            args[i] = held.keep(shifted(canonical[i], ndim));
        } else if (move == 2) {
            Ref own(PySequence_Tuple(canonical[i])), front(own ? Py_BuildValue("(n)", size) : nullptr);
            args[i] = front ? held.keep(PySequence_Concat(front.get(), own.get())) : nullptr;
        }
        if (!args[i]) return nullptr;
    }
    std::vector<PyObject *> fronted(in.values);
    for (Py_ssize_t i = 0; i < in.count; i++) {
        if (in.items[i] == Py_None || in.dims[i] == 0) continue;
        fronted[i] = held.keep(in.dims[i] < 0
                                   ? call_on(deriving.expand, fronted[i], extents(fronted[i], size, 0))
                                   : to_front(fronted[i], in.dims[i]));
        if (!fronted[i]) return nullptr;
    }
    return call_with(f, fronted.data(), in.count, args, n);
}

static PyObject *list_of_dims(const Inputs &in) {
    PyObject *list = PyList_New(in.count);
    for (Py_ssize_t i = 0; list && i < in.count; i++)
        PyList_SET_ITEM(list, i, in.dims[i] < 0 ? incref(Py_None) : PyLong_FromLong(in.dims[i]));
    return list;
}

// What a rule, or `batch`, says: the results, and where their slices are.
static PyObject *by_rule(Callable *f, const Batching *b, const Inputs &in, PyObject *const *canonical,
                         Py_ssize_t n, PyObject *size) {
    std::vector<PyObject *> args(n + 3);
    Ref dims(list_of_dims(in)), list;
    args[1] = size, args[2] = dims.get();
    Py_ssize_t at = f->tensors;
    if (f->tensors < 0) {
        list.take(tuple_of(in.values.data(), in.count));
        args[3] = list.get(), at = 1;
    } else {
        for (Py_ssize_t i = 0; i < in.count; i++) args[3 + i] = in.values[i];
    }
    for (; at < n; at++) args[3 + at] = canonical[at];
    if (!dims || (f->tensors < 0 && !list)) return nullptr;
    return PyObject_Vectorcall(b->rule, &args[1], size_t(n + 2), nullptr);
}

static PyObject *by_python(Callable *f, const Inputs &in, PyObject *const *canonical, Py_ssize_t n,
                           PyObject *size) {
    Ref all(tuple_of(canonical, n)), inputs(tuple_of(in.items, in.count)), dims(list_of_dims(in)),
        values(PyList_New(in.count));
    if (!all || !inputs || !dims || !values) return nullptr;
    for (Py_ssize_t i = 0; i < in.count; i++) PyList_SET_ITEM(values.get(), i, incref(in.values[i]));
    PyObject *args[] = {f->op, size, all.get(), inputs.get(), values.get(), dims.get()};
    return PyObject_Vectorcall(deriving.batching, args, 6, nullptr);
}

// ---- the results --------------------------------------------------------------------------------

// A view shares the counter of what it looks at, and knows what it was made of.
static int look_at(Callable *f, PyObject *result, PyObject *source, PyObject *canonical, PyObject *index) {
    PyObject *counter = counter_of(source);
    if (!counter) return -1;
    set(result, core.counter, incref(counter));
    if (!f->view) return 0;
    Ref made(PyTuple_Pack(4, source, f->op, canonical, index));
    Ref dict(PyObject_GenericGetDict(result, nullptr));
    PyObject *history = field(source, name_history);
    if (!made || !dict || PyDict_SetItem(dict.get(), name_made_from, made.get()) < 0) return -1;
    return history && history != Py_None ? PyDict_SetItem(dict.get(), name_history_of_base, history) : 0;
}

static int record_slices(Callable *f, const Batching *b, const Inputs &in, PyObject *const *canonical,
                         PyObject *const *results, Py_ssize_t count) {
    bool tracked = false, floating = false;
    for (Py_ssize_t i = 0; i < in.count; i++)
        tracked |= in.mine[i] && !is_none(slot(in.items[i], core.edge));
    for (Py_ssize_t i = 0; i < count; i++) floating |= is_floating(slot(results[i], core.array));
    if (!tracked || !floating || !f->differentiable) return 0;
    int recorded = grad_enabled();
    if (recorded <= 0) return recorded;
    Ref edges(PyTuple_New(in.count));
    if (!edges) return -1;
    for (Py_ssize_t i = 0; i < in.count; i++) {
        PyObject *edge = in.mine[i] ? edge_of(in.items[i]) : incref(Py_None);
        if (!edge) return -1;
        PyTuple_SET_ITEM(edges.get(), i, edge);
    }
    bool one = is_none(f->returns);
    if ((one ? record(f, canonical, edges.release(), results[0])
             : record_several(f, canonical, edges.release(), results, count)) < 0)
        return -1;
    if (!b->saves_result) return 0;
    Ref node, states(PyList_New(count));  // it must make the results again as what they are
    for (Py_ssize_t i = 0; states && i < count; i++) {
        PyObject *edge = slot(results[i], core.edge);
        if (!node && !is_none(edge)) node.take(PyObject_GetAttr(edge, name_node));
        Ref dict(PyObject_GenericGetDict(results[i], nullptr));
        PyObject *state = dict ? PyTuple_Pack(2, (PyObject *)Py_TYPE(results[i]), dict.get()) : nullptr;
        if (!state) return -1;
        PyList_SET_ITEM(states.get(), i, state);
    }
    return states && node ? PyObject_SetAttr(node.get(), name_result_state, states.get()) : -1;
}

static int place(PyObject *bdim) { return bdim == Py_None ? -1 : int(PyLong_AsLong(bdim)); }

// `found` on the whole as slices; `where`: a place, or one for each of several; null: in front.
static PyObject *finish_slices(PyObject *level, Callable *f, const Batching *b, const Inputs &in,
                               PyObject *const *canonical, Py_ssize_t n, PyObject *found, PyObject *where) {
    Ref own;
    if (b->shows_memory && !(own.take(tuple_of(canonical, n)), own)) return nullptr;
    if (is_none(f->returns)) {
        if (!PyObject_TypeCheck(found, core.tensor)) return PyErr_Format(PyExc_TypeError, "a rule gave no tensor");
        Ref result(wrap(level, found, where ? place(where) : 0));
        PyObject *one = result.get();
        if (!one || (b->shows_memory && look_at(f, one, in.items[0], own.get(), Py_None) < 0) ||
            record_slices(f, b, in, canonical, &one, 1) < 0)
            return nullptr;
        return result.release();
    }
    Ref all(PySequence_Fast(found, "several results")),
        places(where ? PySequence_Fast(where, "several places") : nullptr);
    if (!all || (where && !places)) return nullptr;
    Py_ssize_t count = PySequence_Fast_GET_SIZE(all.get());
    if (where && PySequence_Fast_GET_SIZE(places.get()) < count) count = PySequence_Fast_GET_SIZE(places.get());
    PyTypeObject *type = (PyTypeObject *)f->returns;
    bool list = type == &PyList_Type;
    Ref results(list ? PyList_New(count) : type->tp_alloc(type, count));
    for (Py_ssize_t i = 0; results && i < count; i++) {
        PyObject *each = wrap(level, PySequence_Fast_GET_ITEM(all.get(), i),
                              where ? place(PySequence_Fast_GET_ITEM(places.get(), i)) : 0);
        if (!each) return nullptr;
        if (list) PyList_SET_ITEM(results.get(), i, each);
        else PyTuple_SET_ITEM(results.get(), i, each);
        Ref index(b->shows_memory ? PyLong_FromSsize_t(i) : nullptr);
        if (index && look_at(f, each, in.items[0], own.get(), index.get()) < 0) return nullptr;
    }
    if (!results || record_slices(f, b, in, canonical, PySequence_Fast_ITEMS(results.get()), count) < 0)
        return nullptr;
    return results.release();
}

// ---- the call -----------------------------------------------------------------------------------

// What a `vmap` makes of a call; null without an error: Python's level is to do it.
static PyObject *call_batched(PyObject *level, Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    const Batching *b = f->batching;
    Inputs in;
    if (n > MAX_ARGS || field(level, name_rewritten) || !in.take(f, canonical, n, level)) return nullptr;
    if (!in.any_mine) return PyObject_Vectorcall((PyObject *)f, canonical, n, nullptr);
    PyObject *size = field(level, name_size);
    if (!size || !PyLong_CheckExact(size)) return nullptr;
    Held held;  // the values: nothing that is called may let go of them
    for (PyObject *value : in.values) held.keep(incref(value));
    Ref found, where, pair;
    if (!in.any_dim) {
        found.take(call_with(f, in.values.data(), in.count, canonical, n));
        bool one = is_none(f->returns);
        Py_ssize_t count = found && !one ? PySequence_Size(found.get()) : 0;
        where.take(one ? incref(Py_None) : PyList_New(count));
        for (Py_ssize_t i = 0; where && i < count; i++) PyList_SET_ITEM(where.get(), i, incref(Py_None));
    } else if (b->way == Batching::RULE) {
        pair.take(by_rule(f, b, in, canonical, n, size));
        if (pair.get() == Py_NotImplemented && b->parts != Py_None) return nullptr;
        if (pair.get() == Py_NotImplemented) pair.take(nullptr);
        else if (!pair) return nullptr;
    } else if (b->way == Batching::BROADCAST) {
        bool anywhere = b->pointwise && in.count == 1 && is_none(f->returns);
        if (anywhere) where.take(PyLong_FromLong(in.dims[0]));
        found.take(anywhere ? call_with(f, in.values.data(), in.count, canonical, n)
                            : broadcast(f, b, in, canonical, n));
    } else if (b->way == Batching::SHIFT) {
        found.take(shift(f, b, in, canonical, n, PyLong_AsSsize_t(size)));
    }
    if (PyErr_Occurred()) return nullptr;
    if (!found && !pair) pair.take(by_python(f, in, canonical, n, size));
    if (!found) {
        if (!pair) return nullptr;
        if (!PyTuple_CheckExact(pair.get()) || PyTuple_GET_SIZE(pair.get()) != 2)
            return PyErr_Format(PyExc_TypeError, "a rule gives results, and where their slices are");
        found.take(incref(PyTuple_GET_ITEM(pair.get(), 0)));
        where.take(incref(PyTuple_GET_ITEM(pair.get(), 1)));
    }
    return finish_slices(level, f, b, in, canonical, n, found.get(), where.get());
}

PyObject *call_in_levels(Callable *f, PyObject *const *canonical, Py_ssize_t n) {
    Ref stack(only_deriving());
    if (!stack || (f->call != call_canonical && !f->pointwise)) return nullptr;
    Py_ssize_t first = f->tensors < 0 ? 1 : f->tensors;
    if (n < first) return nullptr;
    for (Py_ssize_t i = 0; f->tensors >= 0 && i < first; i++)
        if (PyObject_TypeCheck(canonical[i], core.tensor) && !is_known_tensor(canonical[i])) return nullptr;
    if (!f->batching && !(f->batching = read_batching(f))) return nullptr;
    Py_ssize_t height = PyTuple_GET_SIZE(stack.get()) - 1;
    PyObject *level = PyTuple_GET_ITEM(stack.get(), height), *parts = f->batching->parts;
    if (parts != Py_None && (Py_TYPE(level) != deriving.batch || f->batching->way != Batching::RULE))
        return PyObject_Vectorcall(parts, canonical, n, nullptr);
    Ref below(PyTuple_GetSlice(stack.get(), 0, height));
    size_t entered = entered_scopes();
    if (!below || set_variable(deriving.levels, below.get()) < 0) return nullptr;
    PyObject *result = Py_TYPE(level) == deriving.batch ? call_batched(level, f, canonical, n) : nullptr;
    if (!result && !PyErr_Occurred()) {
        Ref all(tuple_of(canonical, n));
        PyObject *args[] = {f->op, all.get()};
        if (all) result = PyObject_Vectorcall(level, args, 2, nullptr);
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!result) leave_down_to(entered);
    if (set_variable(deriving.levels, stack.get()) < 0) PyErr_WriteUnraisable(deriving.levels);
    PyErr_Restore(type, value, trace);
    return result;
}

// ---- what Python tells --------------------------------------------------------------------------

// know_levels(BatchedTensor, BatchLevel, ForwardLevel, levels, function_modes, autocast, batch,
// ranks of a core shape, hollow, movedim, reshape, expand)
static PyObject *know(PyObject *, PyObject *args) {
    Deriving d;
    if (!PyArg_ParseTuple(args, "O!O!O!OOOOOOOOO", &PyType_Type, &d.slice, &PyType_Type, &d.batch,
                          &PyType_Type, &d.forward, &d.levels, &d.function_modes, &d.autocast,
                          &d.batching, &d.ranks, &d.hollow, &d.movedim, &d.reshape, &d.expand))
        return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) Py_INCREF(PyTuple_GET_ITEM(args, i));
    deriving = d;
    Py_RETURN_NONE;
}

// wrap(level, value, bdim): one slice.
static PyObject *wrap_slice(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n != 3 || !deriving.slice || !PyObject_TypeCheck(args[1], core.tensor))
        return PyErr_Format(PyExc_TypeError, "expected a level, a tensor and a dimension");
    int bdim = place(args[2]);
    if (bdim == -1 && PyErr_Occurred()) return nullptr;
    return wrap(args[0], args[1], bdim);
}

static PyMethodDef module_methods[] = {
    {"know_levels", know, METH_VARARGS, nullptr},
    {"wrap_slice", (PyCFunction)(void (*)())wrap_slice, METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

int register_levels(PyObject *module) {
    const struct {
        PyObject **name;
        const char *text;
    } names[] = {{&name_value, "_value"}, {&name_bdim, "_bdim"}, {&name_level, "_level"},
                 {&name_device, "_device"}, {&name_made_from, "_made_from"},
                 {&name_history, "_history"}, {&name_history_of_base, "_history_of_base"},
                 {&name_size, "size"}, {&name_rewritten, "rewritten"},
                 {&name_result_state, "result_state"}, {&name_node, "node"}};
    for (auto &n : names)
        if (!(*n.name = PyUnicode_InternFromString(n.text))) return -1;
    return PyModule_AddFunctions(module, module_methods);
}

}  // namespace fast
