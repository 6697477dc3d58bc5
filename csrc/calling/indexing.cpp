// x[...] and x[...] = value of plain tensors: integers, slices, None and `...` give a view in one
// step; then come all index tensors at once. What is not done here is left, before any effect, to the
// twins in flambeau/ops/indexing/index.py, which also say what is wrong.
#include "arrays.h"
#include "callable_type.h"
#include "calling/pointwise.h"
#include "kernels/moving/places.h"

#include <structmember.h>

using namespace fast;
using moving::Places;
using moving::Target;

namespace calling {

// The ops that make views, those that take and put elements, and the twins: told once by Python.
static struct {
    Callable *select_first, *select, *slice, *unsqueeze, *alias, *take, *put;
    PyObject *getitem, *setitem;
    PyObject *late;  // the module that has the others
    Callable *copy, *fill, *view, *expand;
} known;

constexpr int MAX_ITEMS = 16;

// What an index says of a tensor: a view of it, and the index tensors on that view.
struct Parsed {
    PyArrayObject *array;
    int nd = 0, count = 0;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS], offset = 0;
    Callable *op = nullptr;             // of the last item that changes anything
    bool whole = true;                  // does no item change anything, as it is written?
    Ref indices[moving::MAX_INDICES];   // tensors
    int where[moving::MAX_INDICES];

    void add(npy_intp n, npy_intp stride) { shape[nd] = n, strides[nd++] = stride; }
    npy_intp length(int dim) const { return PyArray_DIM(array, dim); }
    npy_intp stride(int dim) const { return PyArray_STRIDE(array, dim); }
    Target target() const {
        return {nd, shape, strides, PyArray_BYTES(array) + offset, PyArray_ITEMSIZE(array)};
    }
};

static PyArrayObject *array_of(PyObject *tensor) { return (PyArrayObject *)slot(tensor, core.array); }

static bool has_array(PyObject *object) {
    return is_plain_tensor(object) && slot(object, core.array) &&
           PyArray_CheckExact(slot(object, core.array));
}

// A list of integers as a tensor; null without an error: it holds something else.
static PyObject *tensor_of(PyObject *list) {
    npy_intp n = PyList_GET_SIZE(list);
    for (npy_intp i = 0; i < n; i++)
        if (!PyLong_CheckExact(PyList_GET_ITEM(list, i))) return nullptr;
    PyObject *array = PyArray_SimpleNew(1, &n, NPY_INT64);
    if (!array) return nullptr;
    int64_t *to = (int64_t *)PyArray_DATA((PyArrayObject *)array);
    for (npy_intp i = 0; i < n; i++) {
        int overflow;
        to[i] = PyLong_AsLongLongAndOverflow(PyList_GET_ITEM(list, i), &overflow);
        if (overflow) {
            Py_DECREF(array);
            return nullptr;
        }
    }
    return make_tensor(array);
}

static bool is_number(PyObject *item) { return item == Py_None || PyLong_CheckExact(item); }

// One item as it is to be applied; null: not done here. How many dimensions it stands for is `used`.
static PyObject *normal(PyObject *item, int &used) {
    used = 1;
    if (PyLong_CheckExact(item)) return incref(item);
    if (PySlice_Check(item)) {
        PySliceObject *s = (PySliceObject *)item;
        return is_number(s->start) && is_number(s->stop) && is_number(s->step) ? incref(item) : nullptr;
    }
    if (item == Py_None || item == Py_Ellipsis) {
        used = 0;
        return incref(item);
    }
    if (PyList_CheckExact(item)) return tensor_of(item);
    if (!has_array(item)) return nullptr;
    PyArrayObject *array = array_of(item);
    DType type = dtype_of(PyArray_TYPE(array));
    if (type == B1 && PyArray_NDIM(array)) {
        used = PyArray_NDIM(array);
        return incref(item);
    }
    if ((type != I8 && type != I4) || !is_plain((PyObject *)array)) return nullptr;
    if (PyArray_NDIM(array)) return incref(item);
    return type == I8 ? PyLong_FromLongLong(*(int64_t *)PyArray_DATA(array))
                      : PyLong_FromLong(*(int32_t *)PyArray_DATA(array));
}

static bool take_slice(Parsed &p, PyObject *item, int dim, bool alone) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(item, &start, &stop, &step) < 0) {
        PyErr_Clear();
        return false;
    }
    npy_intp n = p.length(dim), stride = p.stride(dim);
    if (step < 1) return false;
    bool narrows = start || stop < n || step > 1;
    if (alone || narrows) p.op = known.slice;
    p.whole &= !narrows;
    Py_ssize_t length = PySlice_AdjustIndices(n, &start, &stop, step);
    p.add(length, stride * step);
    p.offset += start * stride;
    return true;
}

static bool parse(PyArrayObject *array, PyObject *index, Parsed &p) {
    p.array = array;
    settle(array);
    PyObject *const *given = &index;
    Py_ssize_t n = 1;
    bool alone = !PyTuple_CheckExact(index);
    if (!alone) given = &PyTuple_GET_ITEM(index, 0), n = PyTuple_GET_SIZE(index);
    if (n > MAX_ITEMS || PyArray_NDIM(p.array) > NPY_MAXDIMS / 2) return false;
    Ref items[MAX_ITEMS];
    int used[MAX_ITEMS], total = 0;
    bool ellipsis = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        items[i].take(normal(given[i], used[i]));
        if (!items[i]) return PyErr_Clear(), false;
        total += used[i];
    }
    int ndim = PyArray_NDIM(p.array), rest = ndim - total, dim = 0;
    if (rest < 0) return false;
    npy_intp item_size = PyArray_ITEMSIZE(p.array);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = items[i].get();
        if (PyLong_CheckExact(item)) {
            int overflow;
            long at = PyLong_AsLongAndOverflow(item, &overflow);
            npy_intp length = p.length(dim);
            if (overflow || at < -length || at >= length) return false;
            p.offset += (at < 0 ? at + length : at) * p.stride(dim);
            p.op = known.select, p.whole = false;
            dim++;
        } else if (PySlice_Check(item)) {
            if (!take_slice(p, item, dim++, alone)) return false;
        } else if (item == Py_None) {
            p.add(1, dim < ndim ? p.length(dim) * p.stride(dim) : item_size);
            p.op = known.unsqueeze, p.whole = false;
        } else if (item == Py_Ellipsis) {
            for (; !ellipsis && rest; rest--, dim++) p.add(p.length(dim), p.stride(dim));
            ellipsis = true;
        } else {
            if (p.count == moving::MAX_INDICES) return false;
            p.where[p.count] = p.nd;
            p.indices[p.count++].take(items[i].release());
            for (int k = 0; k < used[i]; k++, dim++) p.add(p.length(dim), p.stride(dim));
        }
    }
    for (; dim < ndim; dim++) p.add(p.length(dim), p.stride(dim));
    return true;
}

static PyObject *view_of(const Parsed &p) {
    Py_INCREF(PyArray_DESCR(p.array));
    PyObject *view = PyArray_NewFromDescr(
        &PyArray_Type, PyArray_DESCR(p.array), p.nd, const_cast<npy_intp *>(p.shape),
        const_cast<npy_intp *>(p.strides), PyArray_BYTES(p.array) + p.offset,
        PyArray_FLAGS(p.array) & NPY_ARRAY_WRITEABLE, nullptr);
    if (!view) return nullptr;
    Py_INCREF(p.array);
    if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)p.array) < 0) Py_CLEAR(view);
    return view;
}

// The index with all items that are one for each dimension in place of index tensors.
static PyObject *basic_index(PyObject *index) {
    Py_ssize_t n = PyTuple_CheckExact(index) ? PyTuple_GET_SIZE(index) : 1;
    static PyObject *whole = PySlice_New(nullptr, nullptr, nullptr);
    bool ellipsis = false;
    Ref list(PyList_New(0));
    for (Py_ssize_t i = 0; list && i < n; i++) {
        PyObject *item = PyTuple_CheckExact(index) ? PyTuple_GET_ITEM(index, i) : index;
        int used = 0, failed = 0;
        Ref found(normal(item, used));
        if (!found) return nullptr;
        bool basic = PyLong_CheckExact(found.get()) || PySlice_Check(found.get()) ||
                     found.get() == Py_None || found.get() == Py_Ellipsis;
        if (found.get() == Py_Ellipsis && ellipsis) continue;
        ellipsis |= found.get() == Py_Ellipsis;
        for (int k = 0; k < (basic ? 1 : used) && !failed; k++)
            failed = PyList_Append(list.get(), basic ? found.get() : whole);
        if (failed) return nullptr;
    }
    if (!list || (!ellipsis && PyList_Append(list.get(), Py_Ellipsis) < 0)) return nullptr;
    return PyList_AsTuple(list.get());
}

static PyObject *make_view(PyObject *self, PyObject *index, const Parsed &p) {
    PyObject *canonical[2] = {self, Py_None};
    Ref full;
    Callable *op = p.op ? p.op : known.alias;
    if (!is_none(slot(self, core.edge))) {
        bool first = PyLong_CheckExact(index);
        if (first) op = known.select_first;
        full.take(first ? incref(index) : basic_index(index));
        if (!full) return nullptr;
        canonical[1] = full.get();
    }
    PyObject *array = view_of(p);
    return array ? finish(op, canonical, 2, array) : nullptr;
}

// Some tensors and the index tensors of `p`, and the dimensions that these are of.
struct Indexed {
    Ref tensors, where;

    Indexed(Parsed &p, std::initializer_list<PyObject *> first)
        : tensors(PyTuple_New(first.size() + p.count)), where(PyTuple_New(p.count)) {
        Py_ssize_t n = 0;
        for (PyObject *tensor : first)
            if (tensors) PyTuple_SET_ITEM(tensors.get(), n++, incref(tensor));
        for (int i = 0; tensors && where && i < p.count; i++) {
            PyTuple_SET_ITEM(tensors.get(), n + i, incref(p.indices[i].get()));
            PyObject *at = PyLong_FromLong(p.where[i]);
            if (!at) where.take(nullptr);
            else PyTuple_SET_ITEM(where.get(), i, at);
        }
    }
    explicit operator bool() const { return tensors && where; }
};

static PyObject *take_at(PyObject *view, Parsed &p) {
    Indexed found(p, {view});
    if (!found) return nullptr;
    PyObject *canonical[2] = {found.tensors.get(), found.where.get()};
    return call_plain(known.take, canonical, 2);
}

static PyObject *getitem(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n == 2 && !watched_or_packed() && has_array(args[0])) {
        Parsed p;
        if (parse(array_of(args[0]), args[1], p)) {
            PyObject *result;
            if (!p.count) {
                result = make_view(args[0], args[1], p);
            } else if (p.op) {
                Ref view(make_view(args[0], args[1], p));
                result = view ? take_at(view.get(), p) : nullptr;
            } else {
                result = take_at(args[0], p);
            }
            if (result) return result;
            PyErr_Clear();  // the twin says it in PyTorch's words
        }
    }
    return PyObject_Vectorcall(known.getitem, args, n, nullptr);
}

// ---- assignment ---------------------------------------------------------------------------------

// May the tensor be written to, and has nothing of it a history?
static bool is_free(PyObject *self) {
    if (Py_TYPE(slot(self, core.counter)) == core.untracked ||
        !PyArray_ISWRITEABLE(array_of(self)))
        return false;
    int recording = grad_enabled();
    PyObject *edge = slot(self, core.edge);
    if (recording <= 0 || is_none(edge)) return recording >= 0;
    if (edge != core.lazy || is_none(slot(self, core.base)) ||
        !is_none(slot(slot(self, core.base), core.edge)))
        return false;
    Ref own(edge_of(self));
    return own.get() == Py_None;
}

template <class T>
static bool store(double value, char *to) {
    T element = Narrow<T, decltype(widen(T()))>::from(decltype(widen(T()))(value));
    std::memcpy(to, &element, sizeof(T));
    return true;
}

// A number as an element; false: the twin converts it, or says that it does not fit.
static bool element_of(PyObject *value, PyArrayObject *like, char *to) {
    DType type = dtype_of(PyArray_TYPE(like));
    if (value == Py_True || value == Py_False) {
        if (type != B1) return false;
        *to = value == Py_True;
        return true;
    }
    if (PyLong_CheckExact(value) && (type == I8 || type == I4 || type == U1)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || (type == I4 && number != int32_t(number)) ||
            (type == U1 && number != uint8_t(number)))
            return false;
        if (type == I8) std::memcpy(to, &number, 8);
        if (type == I4) *(int32_t *)to = int32_t(number);
        if (type == U1) *(uint8_t *)to = uint8_t(number);
        return true;
    }
    double number;
    if (PyFloat_CheckExact(value)) {
        number = PyFloat_AS_DOUBLE(value);
    } else {
        int overflow;
        if (!PyLong_CheckExact(value)) return false;
        number = double(PyLong_AsLongLongAndOverflow(value, &overflow));
        if (overflow) return false;
    }
    switch (type) {
        case F4: return std::isinf(number) || !(std::fabs(number) > 3.4e38) ? store<float>(number, to)
                                                                          : false;
        case F8: std::memcpy(to, &number, 8); return true;
        default: return false;
    }
}

static bool write_element(const Parsed &p, const char *element) {
    Target t = p.target();
    if (!p.count) {
        moving::Range range;
        for (int d = 0; d < p.nd; d++) range.add(p.shape[d], p.strides[d], 0);
        moving::fill(range, t.data, element, t.item);
        return true;
    }
    PyObject *arrays[moving::MAX_INDICES];
    for (int i = 0; i < p.count; i++) arrays[i] = slot(p.indices[i].get(), core.array);
    PyArrayObject *first = (PyArrayObject *)arrays[0];
    if (p.count == 1 && PyArray_TYPE(first) == NPY_BOOL)
        return is_plain(arrays[0]) && moving::fill_masked(t, first, p.where[0], element);
    Places places;
    if (!places.read(t, arrays, p.count, p.where)) return false;
    moving::fill_places(t, places, element);
    return true;
}

static bool write_array(const Parsed &p, PyArrayObject *values) {
    Target t = p.target();
    if (PyArray_DESCR(values) != PyArray_DESCR(p.array) || !is_plain((PyObject *)values) ||
        PyArray_NDIM(values) > NPY_MAXDIMS / 2 || moving::may_overlap(p.array, values))
        return false;
    if (!p.count) {
        int extra = p.nd - PyArray_NDIM(values);
        if (extra < 0) return false;
        moving::Range range;
        for (int d = 0; d < p.nd; d++) {
            npy_intp m = d < extra ? 1 : PyArray_DIM(values, d - extra);
            if (m != 1 && m != p.shape[d]) return false;
            range.add(p.shape[d], p.strides[d],
                      d < extra || m == 1 ? 0 : PyArray_STRIDE(values, d - extra));
        }
        moving::copy(range, t.data, PyArray_BYTES(values), t.item);
        return true;
    }
    PyObject *arrays[moving::MAX_INDICES];
    for (int i = 0; i < p.count; i++) {
        arrays[i] = slot(p.indices[i].get(), core.array);
        if (moving::may_overlap(p.array, (PyArrayObject *)arrays[i])) return false;
    }
    if (p.count == 1 && PyArray_TYPE((PyArrayObject *)arrays[0]) == NPY_BOOL &&
        PyArray_SIZE(values) == 1)
        return moving::fill_masked(t, (PyArrayObject *)arrays[0], p.where[0], PyArray_BYTES(values));
    Places places;
    return places.read(t, arrays, p.count, p.where) && moving::put(t, places, values, false);
}

// False: the twin is to do it, or to say what is wrong; nothing has been written.
static bool assign(PyObject *self, PyObject *index, PyObject *value) {
    if (watched_or_packed() || !has_array(self) || !is_free(self) ||
        !moving::is_movable(slot(self, core.array)))
        return false;
    DType type = dtype_of(PyArray_TYPE(array_of(self)));
    if (type == U2 || type == U4 || type == U8) return false;  // of which PyTorch lacks some kernels
    Parsed p;
    if (!parse(array_of(self), index, p)) return false;
    for (int d = 0; d < p.nd; d++)
        if (p.strides[d] == 0 && p.shape[d] > 1) return false;
    if (has_array(value)) {
        if (!is_none(slot(value, core.edge))) {
            int recording = grad_enabled();
            Ref edge(recording > 0 ? edge_of(value) : incref(Py_None));
            if (recording < 0 || edge.get() != Py_None) return false;
        }
        return write_array(p, array_of(value));
    }
    alignas(16) char element[16];
    return element_of(value, p.array, element) && write_element(p, element);
}

// ---- assignment with a history ------------------------------------------------------------------

// The op of that name, whose module may not be there yet when this one is set up.
static Callable *op_of(PyObject *const *values, Py_ssize_t at) {
    PyObject *call = PyTuple_GET_ITEM(values[0], at);
    return Py_TYPE(call) == &CallableType ? (Callable *)call : nullptr;
}

static bool find_ops() {
    if (known.copy) return true;
    Ref found(PyObject_CallNoArgs(known.late));
    if (!found || !PyTuple_CheckExact(found.get()) || PyTuple_GET_SIZE(found.get()) != 4) return false;
    PyObject *values = found.get();
    known.fill = op_of(&values, 1), known.view = op_of(&values, 2), known.expand = op_of(&values, 3);
    if (known.fill && known.view && known.expand) known.copy = op_of(&values, 0);
    if (known.copy) found.release();  // for good
    return known.copy;
}

// A number as a tensor of the type of `like`; null: it does not fit.
static PyObject *number_like(PyObject *value, PyArrayObject *like) {
    alignas(16) char element[16];
    if (!element_of(value, like, element)) return nullptr;
    PyArrayObject *array = moving::empty(like, 0, nullptr);
    if (!array) return nullptr;
    std::memcpy(PyArray_DATA(array), element, PyArray_ITEMSIZE(like));
    return make_tensor((PyObject *)array);
}

static PyObject *shape_tuple(int nd, const npy_intp *shape) {
    PyObject *tuple = PyTuple_New(nd);
    for (int d = 0; tuple && d < nd; d++) PyTuple_SET_ITEM(tuple, d, PyLong_FromSsize_t(shape[d]));
    return tuple;
}

// `value` without leading extents of 1, expanded: what is to be copied to such a part.
static PyObject *expanded(PyObject *value, int nd, const npy_intp *shape) {
    PyArrayObject *array = array_of(value);
    int ones = 0, own = PyArray_NDIM(array);
    while (ones < own && PyArray_DIM(array, ones) == 1) ones++;
    if (own - ones > nd) return nullptr;
    for (int d = ones; d < own; d++)
        if (PyArray_DIM(array, d) != 1 && PyArray_DIM(array, d) != shape[nd - own + d]) return nullptr;
    Ref rest(shape_tuple(own - ones, PyArray_DIMS(array) + ones)), all(shape_tuple(nd, shape));
    if (!rest || !all) return nullptr;
    PyObject *viewed[] = {value, rest.get()};
    Ref seen(call_plain(known.view, viewed, 2));
    if (!seen) return nullptr;
    array = array_of(seen.get());
    if (PyArray_NDIM(array) == nd && PyArray_CompareLists(PyArray_DIMS(array), shape, nd))
        return seen.release();
    PyObject *wide[] = {seen.get(), all.get()};
    return call_plain(known.expand, wide, 2);
}

// False: the twin is to do it; nothing has been written.
static bool assign_recorded(PyObject *self, PyObject *index, PyObject *value) {
    if (watched_or_packed() || !has_array(self) || grad_enabled() <= 0 || !is_floating(slot(self, core.array)) ||
        !PyArray_ISWRITEABLE(array_of(self)))
        return false;
    Parsed p;
    if (!parse(array_of(self), index, p) || !find_ops()) return false;
    Ref given(has_array(value) ? incref(value) : number_like(value, p.array));
    Ref part(!given ? nullptr : p.whole ? incref(self) : make_view(self, index, p));
    if (!part) return false;
    PyArrayObject *values = array_of(given.get());
    if (p.count) {
        Indexed found(p, {part.get(), given.get()});
        if (!found || PyArray_DESCR(values) != PyArray_DESCR(p.array) ||
            (PyArray_NDIM(values) && PyArray_DIM(values, 0) == 1))
            return false;
        PyObject *canonical[] = {found.tensors.get(), found.where.get(), Py_False};
        return Ref(write_inplace(known.put, canonical, 3)).get();
    }
    bool fits = PyArray_NDIM(values) == p.nd && PyArray_CompareLists(PyArray_DIMS(values), p.shape, p.nd);
    if (!fits && PyArray_NDIM(values)) given.take(expanded(given.get(), p.nd, p.shape));
    if (!given) return false;
    PyObject *canonical[] = {part.get(), given.get()};
    return Ref(write_inplace(fits || PyArray_NDIM(values) ? known.copy : known.fill, canonical, 2)).get();
}

static PyObject *setitem(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n == 3 && assign(args[0], args[1], args[2])) {
        if (bump(args[0]) < 0) return nullptr;
        Py_RETURN_NONE;
    }
    if (!PyErr_Occurred() && n == 3 && assign_recorded(args[0], args[1], args[2])) Py_RETURN_NONE;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(moving::Misfit)) PyErr_Clear();
    if (PyErr_Occurred()) return nullptr;
    return PyObject_Vectorcall(known.setitem, args, n, nullptr);
}

// basic_view(array, index): the kernel of views by integers, slices, None and `...`.
static PyObject *basic_view(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (names || n != 2 || !PyArray_CheckExact(args[0])) return moving::declined();
    Parsed p;
    bool done = parse((PyArrayObject *)args[0], args[1], p) && !p.count;
    return done ? view_of(p) : moving::declined();
}

// ---- for Python ---------------------------------------------------------------------------------

// A function that is a method of a class that it is an attribute of.
struct Method {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t);
    PyObject *twin;
};
static PyTypeObject MethodType = {PyVarObject_HEAD_INIT(nullptr, 0)};

static PyObject *call_method(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Method *m = (Method *)self;
    if (names && PyTuple_GET_SIZE(names)) return PyObject_Vectorcall(m->twin, args, nargsf, names);
    return m->function(self, args, PyVectorcall_NARGS(nargsf));
}

static PyObject *bind_method(PyObject *self, PyObject *object, PyObject *) {
    return is_none(object) ? incref(self) : PyMethod_New(self, object);
}

static PyObject *attribute(PyObject *self, PyObject *name) {
    return attribute_of_either(self, ((Method *)self)->twin, name);
}

static PyObject *own_attribute(PyObject *self, void *name) {
    return PyObject_GetAttrString(((Method *)self)->twin, (const char *)name);
}

static PyGetSetDef getset[] = {
    {"__doc__", own_attribute, nullptr, nullptr, (void *)"__doc__"},
    {"__name__", own_attribute, nullptr, nullptr, (void *)"__name__"},
    {"__qualname__", own_attribute, nullptr, nullptr, (void *)"__qualname__"},
    {"__module__", own_attribute, nullptr, nullptr, (void *)"__module__"},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

static PyObject *new_method(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t),
                            PyObject *twin) {
    Method *m = PyObject_New(Method, &MethodType);
    if (m) m->call = call_method, m->function = function, m->twin = incref(twin);
    return (PyObject *)m;
}

// make_indexing(getitem, setitem, select_first, select, slice, unsqueeze, alias, take, put, late): the
// twins and the ops, to the two methods; `late` gives the ops copy, fill, view and expand.
static PyObject *make_indexing(PyObject *, PyObject *args) {
    PyObject *ops[7];
    if (!PyArg_ParseTuple(args, "OOO!O!O!O!O!O!O!O", &known.getitem, &known.setitem, &CallableType, &ops[0],
                          &CallableType, &ops[1], &CallableType, &ops[2], &CallableType, &ops[3],
                          &CallableType, &ops[4], &CallableType, &ops[5], &CallableType, &ops[6],
                          &known.late))
        return nullptr;
    Callable **places[] = {&known.select_first, &known.select, &known.slice, &known.unsqueeze,
                           &known.alias, &known.take, &known.put};
    for (int i = 0; i < 7; i++) *places[i] = (Callable *)incref(ops[i]);
    Py_INCREF(known.getitem), Py_INCREF(known.setitem), Py_INCREF(known.late);
    Ref get(new_method(getitem, known.getitem)), put(new_method(setitem, known.setitem));
    return get && put ? PyTuple_Pack(2, get.get(), put.get()) : nullptr;
}

static PyMethodDef methods[] = {{"make_indexing", make_indexing, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace calling

int register_indexing(PyObject *module) {
    using namespace calling;
    PyTypeObject &t = MethodType;
    t.tp_name = "flambeau.method";
    t.tp_basicsize = sizeof(Method);
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
    t.tp_vectorcall_offset = offsetof(Method, call);
    t.tp_call = PyVectorcall_Call;
    t.tp_descr_get = bind_method;
    t.tp_getattro = attribute;
    t.tp_getset = getset;
    if (PyType_Ready(&t) < 0 || make_function(module, "basic_view", basic_view)) return -1;
    return PyModule_AddFunctions(module, methods);
}
