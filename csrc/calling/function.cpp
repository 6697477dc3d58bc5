// A public function, or a method, of the dispatcher: the arguments are bound to one of its
// signatures, made canonical, and handed to the op of that signature. `flambeau/dispatch/function.py`
// is its twin, which does everything: C hands it what is not the common case, before any effect.
#include "callable_type.h"
#include "calling/calling.h"
#include "calling/levels.h"
#include "calling/pointwise.h"

#include <algorithm>

#include <structmember.h>

using namespace fast;
using binding::Answer;
using binding::Bound;

namespace calling {

struct Function {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *dict, *weakrefs;
    PyObject *twin;      // does every call
    PyObject *describe;  // what the overloads are, until the first call; then null
    PyObject *body;      // of a function in Python: does the calls that nobody watches; else null
    bool method, operates;  // as an operator, it says NotImplemented for a TypeError
    int count;
    Overload *overloads;
};
static PyTypeObject FunctionType = {PyVarObject_HEAD_INIT(nullptr, 0)};

// ---- what Python has declared -------------------------------------------------------------------

static const struct {
    const char *name;
    Runner run;
    bool writes;
} kinds[] = {{"op", run_op, false}, {"prepared", run_prepared, false}, {"factory", run_factory, false},
             {"inplace", run_op, true}, {"prepared inplace", run_prepared, true}};

// May the operands be taken as they are given, and the rest from the defaults?
static int count_straight(const Overload &o) {
    bool op = o.run == run_op && Py_TYPE(o.target) == &CallableType;
    if (!op || !((Callable *)o.target)->pointwise || ((Callable *)o.target)->tensors > 4) return -1;
    int operands = ((Callable *)o.target)->tensors;
    for (int i = 0; i < o.count; i++) {
        const Argument &a = o.arguments[i];
        if ((a.role != AS_IS && a.role != FLOAT) || (i < operands && a.parameter != i)) return -1;
        if (i >= operands && (a.parameter < 0 || !o.signature.parameters[a.parameter].value)) return -1;
    }
    return operands;
}

static int read_overload(PyObject *description, bool method, Overload &o) {
    const char *kind;
    PyObject *parameters, *arguments, *target, *facts, *op;
    if (!PyArg_ParseTuple(description, "O!O!OisOO", &PyList_Type, &parameters, &PyList_Type,
                          &arguments, &target, &o.out, &kind, &facts, &op))
        return -1;
    for (auto &k : kinds)
        if (!std::strcmp(kind, k.name)) o.run = k.run, o.writes = k.writes;
    if (!o.run || !PyCallable_Check(target))
        return PyErr_Format(PyExc_TypeError, "not a call of kind %s", kind), -1;
    if (PyList_GET_SIZE(arguments) > MAX_ARGS)
        return PyErr_Format(PyExc_ValueError, "too many canonical arguments"), -1;
    if (o.run == run_factory && read_options(facts, o.options) < 0) return -1;
    if (binding::read(parameters, method, o.signature) < 0) return -1;
    o.target = incref(target), o.facts = incref(facts), o.op = incref(op);
    Py_ssize_t count = PyList_GET_SIZE(arguments);
    o.arguments = (Argument *)PyMem_Calloc(count ? count : 1, sizeof(Argument));
    if (!o.arguments) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++, o.count++) {
        int parameter, role;
        PyObject *constant;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(arguments, i), "iiO", &parameter, &role, &constant))
            return -1;
        o.arguments[i] = {int8_t(parameter), Role(role), incref(constant)};
        o.counts_dims |= role == DIM || role == NEW_DIM || role == DIMS || role == ALL_DIMS ||
                         role == SOME_DIMS;
    }
    o.straight = count_straight(o);
    return 0;
}

static void release(Overload &o) {
    binding::release(o.signature);
    for (int i = 0; i < o.count; i++) Py_XDECREF(o.arguments[i].constant);
    PyMem_Free(o.arguments);
    Py_XDECREF(o.target), Py_XDECREF(o.facts), Py_XDECREF(o.prepare), Py_XDECREF(o.op);
}

// At the first call. None: all calls are the twin's.
static int prepare(Function *f) {
    Ref describe(f->describe);
    f->describe = nullptr;
    Ref found(PyObject_CallNoArgs(describe.get()));
    if (!found) return -1;
    if (found.get() == Py_None) return 0;
    if (!PyList_Check(found.get())) return PyErr_Format(PyExc_TypeError, "expected a list"), -1;
    Py_ssize_t n = PyList_GET_SIZE(found.get());
    f->overloads = (Overload *)PyMem_Calloc(n ? n : 1, sizeof(Overload));
    if (!f->overloads) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++, f->count++)
        if (read_overload(PyList_GET_ITEM(found.get(), i), f->method, f->overloads[i]) < 0) {
            release(f->overloads[i]);
            return -1;
        }
    return 0;
}

// ---- canonical arguments ------------------------------------------------------------------------

// A dimension counted from the front; -1: there is none of that number.
static int wrapped(PyObject *value, int ndim) {
    int overflow, low = ndim ? ndim : 1;
    long d = PyLong_AsLongAndOverflow(value, &overflow);
    if (overflow || d < -low || d >= low) return -1;
    return int(d < 0 ? d + low : d);
}

static PyObject *wrapped_dims(PyObject *value, int ndim) {
    if (PyLong_CheckExact(value)) {
        int d = wrapped(value, ndim);
        if (d < 0) return nullptr;
        if (!ndim) return incref(Py_None);
        Ref number(PyLong_FromLong(d));
        return number ? PyTuple_Pack(1, number.get()) : nullptr;
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(value);
    if (!n) return incref(Py_None);
    uint64_t seen = 0;
    Ref tuple(PyTuple_New(n));
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        int d = wrapped(PySequence_Fast_GET_ITEM(value, i), ndim);
        if (d < 0 || seen >> d & 1) return nullptr;
        seen |= uint64_t(1) << d;
        PyObject *number = PyLong_FromLong(d);
        if (!number) return nullptr;
        PyTuple_SET_ITEM(tuple.get(), i, number);
    }
    return ndim ? tuple.release() : incref(Py_None);
}

// Each dimension once, in some order.
static PyObject *all_dims(PyObject *value, int ndim) {
    if (PyLong_CheckExact(value) || PySequence_Fast_GET_SIZE(value) != ndim) return nullptr;
    return ndim ? wrapped_dims(value, ndim) : PyTuple_New(0);
}

// Dimensions of which there may be none.
static PyObject *some_dims(PyObject *value, int ndim) {
    PyObject *dims = wrapped_dims(value, ndim);
    if (dims != Py_None) return dims;
    Py_DECREF(dims);
    return PyTuple_New(0);
}

// Extents; kernels leave it to the twin to find out what a -1 stands for, if they can't.
static PyObject *sizes(PyObject *value) {
    if (PyLong_CheckExact(value)) return nullptr;
    PyObject **items = PySequence_Fast_ITEMS(value);
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(value); i < n; i++) {
        int overflow;
        PyLong_AsLongAndOverflow(items[i], &overflow);
        if (overflow) return nullptr;
    }
    return PyTuple_CheckExact(value) ? incref(value) : PySequence_Tuple(value);
}

static PyObject *as_tuple(PyObject *value, int size) {
    if (PyTuple_CheckExact(value)) return incref(value);
    if (PyTuple_Check(value) || PyList_CheckExact(value)) return PySequence_Tuple(value);
    PyObject *tuple = PyTuple_New(size);
    for (int i = 0; tuple && i < size; i++) PyTuple_SET_ITEM(tuple, i, incref(value));
    return tuple;
}

// Extents of a new tensor that fits into memory.
static PyObject *extents(PyObject *value) {
    if (PyLong_CheckExact(value)) return nullptr;
    PyObject **items = PySequence_Fast_ITEMS(value);
    double count = 1;
    for (Py_ssize_t i = 0, n = PySequence_Fast_GET_SIZE(value); i < n; i++) {
        int overflow;
        long long length = PyLong_AsLongLongAndOverflow(items[i], &overflow);
        count *= double(length);
        if (overflow || length < 0 || count > 1e12 || n > NPY_MAXDIMS) return nullptr;
    }
    return PyTuple_CheckExact(value) ? incref(value) : PySequence_Tuple(value);
}

// A number, or the only one of a tensor without dimensions.
static PyObject *number(PyObject *value) {
    if (!is_plain_tensor(value)) return incref(value);
    PyArrayObject *x = (PyArrayObject *)slot(value, core.array);
    if (!x || !PyArray_CheckExact(x) || PyArray_NDIM(x)) return nullptr;
    return PyArray_GETITEM(x, PyArray_BYTES(x));
}

static PyObject *as_float(PyObject *value) {
    return PyLong_Check(value) ? PyNumber_Float(value) : incref(value);
}

PyObject *canonical_value(Role role, PyObject *value, int ndim, int size) {
    static PyObject *numpy = PyUnicode_InternFromString("numpy");
    if (value == Py_None) return incref(value);
    switch (role) {
        case AS_IS: return incref(value);
        case DIM:
        case NEW_DIM: {
            int d = wrapped(value, ndim + (role == NEW_DIM));
            return d < 0 ? nullptr : PyLong_FromLong(d);
        }
        case DIMS: return wrapped_dims(value, ndim);
        case INTS:
        case TENSORS: return as_tuple(value, size);
        case DTYPE: return PyObject_GetAttr(value, numpy);
        case ALL_DIMS: return all_dims(value, ndim);
        case SIZES: return sizes(value);
        case SOME_DIMS: return some_dims(value, ndim);
        case EXTENTS: return extents(value);
        case NUMBER: return number(value);
        case FLOAT: return as_float(value);
    }
    return nullptr;
}

static int ndim_of_one(PyObject *tensor) {
    if (!tensor || !is_known_tensor(tensor) || !slot(tensor, core.array)) return -1;
    PyObject *array = slot(tensor, core.array);
    return PyArray_Check(array) ? PyArray_NDIM((PyArrayObject *)array) : -1;
}

// How many dimensions the first tensor of a call has; -1: there is none that says so.
static int ndim_of(const Overload &o, PyObject *const *values) {
    PyObject *first = o.count && o.arguments[0].parameter >= 0 ? values[o.arguments[0].parameter] : nullptr;
    if (!first || o.arguments[0].role != TENSORS) return ndim_of_one(first);
    int ndim = -1;  // of a list the first that is no vector of length 0, which PyTorch passes over
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(first); i++) {
        PyObject *each = PySequence_Fast_GET_ITEM(first, i);
        ndim = ndim_of_one(each);
        if (ndim != 1 || PyArray_SIZE((PyArrayObject *)slot(each, core.array))) break;
    }
    return ndim;
}

// ---- calls --------------------------------------------------------------------------------------

// Canonical arguments, by their roles; false without an error: the twin says what is wrong.
struct Canonical {
    PyObject *items[MAX_ARGS], *held[MAX_ARGS];  // of those only what was made for the call
    int count = 0;

    ~Canonical() {
        while (count) Py_DECREF(held[--count]);
    }

    bool make(const Overload &o, PyObject *const *values, int ndim) {
        for (int i = 0; i < o.count; i++) {
            const Argument &a = o.arguments[i];
            PyObject *value = a.parameter < 0 ? a.constant : values[a.parameter];
            if (a.role != AS_IS && a.parameter >= 0) {
                int size = o.signature.parameters[a.parameter].size;
                value = canonical_value(a.role, value, ndim, size);
                if (!value) return false;
                held[count++] = value;
            }
            items[i] = value;
        }
        return true;
    }
};

// What is said of `out` where a call fails, if PyTorch says that first; else the error stays.
static PyObject *refuse_out(const Overload &o, PyObject *out, PyObject *canonical) {
    if (!PyErr_ExceptionMatches(PyExc_IndexError) && !PyErr_ExceptionMatches(PyExc_RuntimeError) &&
        !PyErr_ExceptionMatches(PyExc_TypeError))
        return nullptr;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    Ref hook(PyObject_GetAttrString(core.late_bound, "refuse_out"));
    Ref said(hook ? PyObject_CallFunctionObjArgs(hook.get(), out, o.op, canonical, value, nullptr) : nullptr);
    if (said) return PyErr_Restore(type, value, trace), nullptr;
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    return nullptr;
}

// An op that is made of others, with `out=`.
static PyObject *run_body_out(const Overload &o, PyObject *const *canonical, PyObject *out) {
    bool several = PyTuple_CheckExact(out);
    PyObject *const *outs = several ? &PyTuple_GET_ITEM(out, 0) : &out;
    for (Py_ssize_t i = 0, n = several ? PyTuple_GET_SIZE(out) : 1; i < n; i++)
        if (o.op == Py_None || !may_store(outs[i], canonical, o.count)) return nullptr;
    Ref result(PyObject_Vectorcall(o.target, canonical, o.count, nullptr));
    Ref arguments(tuple_of(canonical, o.count));
    if (!arguments) return nullptr;
    if (!result) return refuse_out(o, out, arguments.get());
    if (!several && is_plain_tensor(result.get()) && is_none(slot(result.get(), core.edge)) && result.get() != out &&
        slot(result.get(), core.array) && store(out, slot(result.get(), core.array)))
        return incref(out);
    Ref hook(PyErr_Occurred() ? nullptr : PyObject_GetAttrString(core.late_bound, "store"));
    return hook ? PyObject_CallFunctionObjArgs(hook.get(), out, o.op, result.get(), arguments.get(), nullptr)
                : nullptr;
}

// … and its in-place form, where nothing has a history.
static PyObject *run_body_inplace(const Overload &o, PyObject *const *canonical) {
    PyObject *tensor = canonical[0];
    if (o.op == Py_None || !is_plain_tensor(tensor) || !may_store(tensor, canonical + 1, o.count - 1))
        return nullptr;
    Ref result(PyObject_Vectorcall(o.target, canonical, o.count, nullptr));
    if (!result) return nullptr;
    PyObject *made = result.get();
    bool fits = is_plain_tensor(made) && is_none(slot(made, core.edge)) && made != tensor &&
                slot(made, core.array) && store(tensor, slot(made, core.array));
    return fits ? incref(tensor) : nullptr;
}

// An op with a kernel, or one that is made of others.
PyObject *run_op(const Overload &o, PyObject *const *values) {
    bool composite = Py_TYPE(o.target) != &CallableType, out = o.out >= 0 && values[o.out] != Py_None;
    bool counts = composite ? o.counts_dims : !((Callable *)o.target)->pointwise;
    int ndim = counts ? ndim_of(o, values) : 0;
    Canonical made;
    if (ndim < 0 || !made.make(o, values, ndim)) return nullptr;
    PyObject *const *canonical = made.items;
    if (composite && o.writes) return run_body_inplace(o, canonical);
    if (composite && out) return run_body_out(o, canonical, values[o.out]);
    if (composite && o.facts != Py_None) {  // the common case in C
        PyObject *result = PyObject_Vectorcall(o.facts, canonical, o.count, nullptr);
        if (result != Py_NotImplemented) return result;
        Py_DECREF(result);
    }
    if (composite) return PyObject_Vectorcall(o.target, canonical, o.count, nullptr);
    Callable *op = (Callable *)o.target;
    if (o.writes) return write_inplace(op, canonical, o.count);
    if (out) return write_out(op, canonical, o.count, values[o.out]);
    PyObject *result = call_plain(op, canonical, o.count);
    if (!result && op->view && PyErr_ExceptionMatches(PyExc_ValueError))
        PyErr_Clear();  // there is no such view: the twin says so in the words of the call
    return result;
}

// An op whose canonical arguments Python makes, with the checks.
PyObject *run_prepared(const Overload &o, PyObject *const *values) {
    bool out = o.out >= 0 && values[o.out] != Py_None;
    PyObject *given[MAX_ARGS];
    Ref held[MAX_ARGS];
    for (int i = 0; i < o.count; i++) {
        const Argument &a = o.arguments[i];
        given[i] = a.parameter < 0 ? a.constant : values[a.parameter];
        bool counts = PyLong_CheckExact(given[i]) && (a.role == INTS || a.role == FLOAT);
        if (counts) {  // one number for each of a list
            int size = o.signature.parameters[a.parameter].size;
            held[i].take(a.role == FLOAT ? as_float(given[i]) : as_tuple(given[i], size));
            given[i] = held[i].get();
            if (!given[i]) return nullptr;
        }
    }
    Ref made(PyObject_Vectorcall(o.facts, given, o.count, nullptr));
    if (!made) {  // of what is written to, other things may be said first
        if ((out || o.writes) && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
        return nullptr;
    }
    Ref canonical(PySequence_Tuple(made.get()));
    if (!canonical) return nullptr;
    PyObject **items = &PyTuple_GET_ITEM(canonical.get(), 0);
    Py_ssize_t n = PyTuple_GET_SIZE(canonical.get());
    if (out) return write_out((Callable *)o.target, items, n, values[o.out]);
    if (o.writes)
        return n && items[0] == given[0] ? write_inplace((Callable *)o.target, items, n) : nullptr;
    PyObject *result = call_plain((Callable *)o.target, items, n);
    return result || PyErr_Occurred() ? result : PyObject_Vectorcall(o.target, items, n, nullptr);
}

// The call of a pointwise op with nothing but its operands; null without an error: not of that kind.
static PyObject *run_straight(const Overload &o, PyObject *const *args) {
    int n = o.straight;
    for (int i = 0; i < n; i++) {
        binding::Kind kind = o.signature.parameters[i].kind;
        bool number = PyFloat_CheckExact(args[i]) || PyLong_CheckExact(args[i]);
        bool tensor = !number && is_plain_tensor(args[i]);
        bool fits = kind == binding::TENSOR   ? tensor
                    : kind == binding::SCALAR ? number
                                              : kind == binding::TENSOR_OR_NUMBER && (tensor || number);
        if (!fits) return nullptr;
    }
    PyObject *canonical[MAX_ARGS];
    for (int i = 0; i < o.count; i++)
        canonical[i] = i < n ? args[i] : o.signature.parameters[o.arguments[i].parameter].value;
    Callable *op = (Callable *)o.target;
    return o.writes ? write_inplace(op, canonical, o.count) : run_pointwise(op, canonical, o.count);
}

// ---- calls in levels that derive ----------------------------------------------------------------

// What makes the canonical arguments of an op, if not their roles alone.
static PyObject *preparing(Overload &o) {
    if (o.prepare) return o.prepare;
    if (o.run == run_prepared) return o.prepare = incref(o.facts);
    if (Py_TYPE(o.target) != &CallableType) return o.prepare = incref(Py_None);
    Ref declaration(PyObject_GetAttrString(((Callable *)o.target)->op, "declaration"));
    return declaration ? o.prepare = PyObject_GetAttrString(declaration.get(), "canonical") : nullptr;
}

// A new tensor, perhaps like a slice: then like the whole, and one slice of that.
static PyObject *make_in_levels(const Overload &o, PyObject *const *values) {
    if (!PyCFunction_CheckExact(o.target)) return nullptr;  // random: a level may refuse that
    int own = o.options.self;
    for (int i = 0; i < o.signature.count; i++)
        if (is_slice(values[i]) && (i != own || !o.options.like)) return nullptr;
    if (own < 0 || !is_slice(values[own])) return run_factory(o, values);
    PyObject *whole[binding::MAX_PARAMETERS];
    std::copy(values, values + o.signature.count, whole);
    Ref value(whole_of(values[own]));
    if (!value) return nullptr;
    whole[own] = value.get();
    Ref made(make_in_levels(o, whole));
    return made ? slice_like(values[own], made.get()) : nullptr;
}

// A call of that overload, for a `vmap` or in forward mode; null without an error: it is the twin's.
static PyObject *run_in_levels(Overload &o, PyObject *const *values) {
    if (o.writes || (o.out >= 0 && values[o.out] != Py_None)) return nullptr;
    if (o.run == run_factory) return make_in_levels(o, values);
    bool composite = Py_TYPE(o.target) != &CallableType;
    if (composite && o.run != run_op) return nullptr;
    PyObject *prepare = preparing(o);
    if (!prepare) return nullptr;
    if (prepare != Py_None) {
        PyObject *given[MAX_ARGS];
        for (int i = 0; i < o.count; i++)
            given[i] = o.arguments[i].parameter < 0 ? o.arguments[i].constant
                                                    : values[o.arguments[i].parameter];
        Ref made(PyObject_Vectorcall(prepare, given, o.count, nullptr));
        Ref all(made ? PySequence_Tuple(made.get()) : nullptr);
        if (!all) PyErr_Clear();  // the twin says what is wrong
        return all ? PyObject_Vectorcall(o.target, &PyTuple_GET_ITEM(all.get(), 0),
                                         PyTuple_GET_SIZE(all.get()), nullptr)
                   : nullptr;
    }
    Callable *f = composite ? nullptr : (Callable *)o.target;
    int ndim = o.counts_dims || (f && !f->pointwise) ? ndim_of(o, values) : 0;
    Canonical made;
    if (ndim < 0 || !made.make(o, values, ndim)) return nullptr;
    return PyObject_Vectorcall(o.target, made.items, o.count, nullptr);
}

static PyObject *call_watched(Function *f, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (!Ref(only_deriving())) return nullptr;
    if (f->describe && prepare(f) < 0) return nullptr;
    for (int i = 0; i < f->count; i++) {
        Bound bound;
        Answer answer;
        {
            binding::TakesSlices slices;
            answer = binding::bind(f->overloads[i].signature, args, n, names, bound);
        }
        if (answer == Answer::NO) continue;
        return answer == Answer::YES ? run_in_levels(f->overloads[i], bound.values) : nullptr;
    }
    return nullptr;
}

// Is the op made of others, by a body that may have had effects?
static bool is_composite(const Overload &o) {
    return (o.run == run_op || o.run == run_prepared) && Py_TYPE(o.target) != &CallableType;
}

// The error of a body that has run, in PyTorch's words if it is about memory.
static PyObject *reworded(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    Ref all(tuple_of(args, n + (names ? PyTuple_GET_SIZE(names) : 0)));
    Ref hook(PyObject_GetAttrString(core.late_bound, "too_large"));
    Ref better(all && hook ? PyObject_CallFunctionObjArgs(hook.get(), all.get(), value, nullptr) : nullptr);
    if (!better || better.get() != Py_None) {
        Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
        if (better) PyErr_SetObject((PyObject *)Py_TYPE(better.get()), better.get());
        return nullptr;
    }
    PyErr_Restore(type, value, trace);
    return nullptr;
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Function *f = (Function *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (!watched()) {
        if (f->describe && prepare(f) < 0) return nullptr;
        for (int i = 0; !names && i < f->count; i++) {
            if (f->overloads[i].straight != n) continue;
            PyObject *result = run_straight(f->overloads[i], args);
            if (result || PyErr_Occurred()) return result;
        }
        for (int i = 0; i < f->count; i++) {
            Bound bound;
            Answer answer = binding::bind(f->overloads[i].signature, args, n, names, bound);
            if (answer == Answer::NO) continue;
            PyObject *result = answer == Answer::YES
                                   ? f->overloads[i].run(f->overloads[i], bound.values)
                                   : nullptr;
            if (!result && (PyErr_ExceptionMatches(PyExc_MemoryError) ||
                            PyErr_ExceptionMatches(PyExc_NotImplementedError) ||
                            PyErr_ExceptionMatches(PyExc_ValueError))) {
                if (is_composite(f->overloads[i])) return reworded(args, n, names);
                PyErr_Clear();  // no memory or kernel, or a Misfit: the twin says it as PyTorch does
            } else if (result || PyErr_Occurred()) {
                return result;
            }
            break;
        }
    } else {
        PyObject *result = call_watched(f, args, n, names);
        if (result) return result;
        if (PyErr_Occurred()) {
            if (!f->operates || !PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
            PyErr_Clear();
            return incref(Py_NotImplemented);
        }
    }
    return PyObject_Vectorcall(f->twin, args, nargsf, names);
}

// A function in Python: are all arguments of types that override nothing?
static PyObject *call_body(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Function *f = (Function *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf) + (names ? PyTuple_GET_SIZE(names) : 0);
    bool plain = all_passive(args, n);
    return PyObject_Vectorcall(plain ? f->body : f->twin, args, nargsf, names);
}

// ---- the type -----------------------------------------------------------------------------------

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Function *f = (Function *)self;
    Py_VISIT(f->dict);
    Py_VISIT(f->twin);
    Py_VISIT(f->describe);
    Py_VISIT(f->body);
    return 0;
}

static int clear(PyObject *self) {
    Py_CLEAR(((Function *)self)->dict);
    return 0;
}

static void dealloc(PyObject *self) {
    Function *f = (Function *)self;
    PyObject_GC_UnTrack(self);
    if (f->weakrefs) PyObject_ClearWeakRefs(self);
    clear(self);
    for (int i = 0; i < f->count; i++) release(f->overloads[i]);
    PyMem_Free(f->overloads);
    Py_XDECREF(f->twin), Py_XDECREF(f->describe), Py_XDECREF(f->body);
    PyObject_GC_Del(self);
}

static PyObject *get(PyObject *self, PyObject *object, PyObject *) {
    if (is_none(object)) return incref(self);
    return ((Function *)self)->body ? PyMethod_New(self, object) : bind_method(self, object);
}

static PyObject *name_of(PyObject *self) { return PyObject_GetAttrString(self, "__qualname__"); }

static PyObject *repr(PyObject *self) {
    Function *f = (Function *)self;
    Ref name(name_of(self));
    if (!name) return nullptr;
    if (f->method) return PyUnicode_FromFormat("<method '%U' of 'torch._C.TensorBase' objects>", name.get());
    return PyUnicode_FromFormat(f->body ? "<function %U at %p>" : "<built-in method %U of type object at %p>",
                                name.get(), self);
}

static PyObject *reduce(PyObject *self, PyObject *) { return name_of(self); }

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Function, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weakrefs), READONLY, nullptr},
    {"twin", T_OBJECT, offsetof(Function, twin), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
static PyObject *signature(PyObject *self, void *) {
    return PyObject_GetAttrString(((Function *)self)->twin, "__signature__");
}

static PyObject *op_of(PyObject *self, void *) {
    return PyObject_GetAttrString(((Function *)self)->twin, "op");
}

static PyGetSetDef getset[] = {
    {"__signature__", signature, nullptr, nullptr, nullptr},
    {"op", op_of, nullptr, nullptr, nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

static Function *new_function(PyObject *twin, vectorcallfunc call) {
    Function *f = PyObject_GC_New(Function, &FunctionType);
    if (!f) return nullptr;
    f->call = call, f->dict = f->weakrefs = f->describe = f->body = nullptr;
    f->twin = incref(twin), f->count = 0, f->overloads = nullptr;
    f->method = f->operates = false;
    return f;
}

// function(twin, describe, is_method, operates)
static PyObject *make(PyObject *, PyObject *args) {
    PyObject *twin, *describe;
    int method, operates;
    if (!PyArg_ParseTuple(args, "OOpp", &twin, &describe, &method, &operates)) return nullptr;
    Function *f = new_function(twin, call);
    if (!f) return nullptr;
    f->describe = incref(describe), f->method = method, f->operates = operates;
    PyObject_GC_Track((PyObject *)f);
    return (PyObject *)f;
}

// function(twin, body)
static PyObject *make_in_python(PyObject *, PyObject *args) {
    PyObject *twin, *body;
    if (!PyArg_ParseTuple(args, "OO", &twin, &body)) return nullptr;
    Function *f = new_function(twin, call_body);
    if (!f) return nullptr;
    f->body = incref(body);
    PyObject_GC_Track((PyObject *)f);
    return (PyObject *)f;
}

// know(dtype, device, layout, memory_format, generator, size, strided, preserve_format, contiguous_format,
// channels_last, channels_last_3d): the types of some arguments, and values of them.
static PyObject *know(PyObject *, PyObject *args) {
    binding::Known &k = binding::known;
    PyTypeObject **types[] = {&k.dtype, &k.device, &k.layout, &k.memory_format, &k.generator, &k.size};
    if (PyTuple_GET_SIZE(args) != 11) return PyErr_Format(PyExc_TypeError, "expected eleven objects");
    for (int i = 0; i < 6; i++) {
        PyObject *type = PyTuple_GET_ITEM(args, i);
        if (!PyType_Check(type)) return PyErr_Format(PyExc_TypeError, "expected a type");
        *types[i] = (PyTypeObject *)incref(type);
    }
    PyObject **values[] = {&k.strided, &k.preserve, &k.contiguous, &k.channels_last, &k.channels_last_3d};
    for (int i = 0; i < 5; i++) *values[i] = incref(PyTuple_GET_ITEM(args, 6 + i));
    Py_RETURN_NONE;
}

static PyMethodDef module_methods[] = {{"make_function", make, METH_VARARGS, nullptr},
                                       {"make_python_function", make_in_python, METH_VARARGS, nullptr},
                                       {"know_types", know, METH_VARARGS, nullptr},
                                       {nullptr, nullptr, 0, nullptr}};

}  // namespace calling

int register_calling(PyObject *module) {
    using namespace calling;
    PyTypeObject &t = FunctionType;
    describe_callable<Function>(t, "flambeau.function", dealloc, traverse, calling::clear, members, getset);
    t.tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
    t.tp_weaklistoffset = offsetof(Function, weakrefs);
    t.tp_descr_get = get;
    t.tp_repr = repr;
    t.tp_methods = methods;
    if (PyType_Ready(&t) < 0 || register_bound_methods() < 0) return -1;
    return PyModule_AddFunctions(module, module_methods);
}
