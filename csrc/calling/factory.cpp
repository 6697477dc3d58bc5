// Functions that make tensors: `zeros(2, 3, dtype=…)`, `zeros_like(x)`, `x.new_zeros(2)`. The kernel
// gets the canonical arguments and a NumPy type and gives an array; the options, which all of them
// take, are read here. `flambeau/dispatch/factory.py` is the twin.
#include "arrays.h"
#include "calling/calling.h"
#include "calling/pointwise.h"

using namespace fast;

namespace calling {

// Which type the elements have if none is given.
enum Typed : int { DEFAULT, FIXED, OF_SELF, OF_VALUE, WHOLE, FLOATING };

// (typed, type, hollow, like, random, self, dtype, layout, device, pin_memory, requires_grad,
// memory_format), the last seven places of parameters, or -1.
int read_options(PyObject *facts, Options &o) {
    return PyTuple_Check(facts) &&
           PyArg_ParseTuple(facts, "iOOppiiiiiii", &o.typed, &o.type, &o.hollow, &o.like, &o.random, &o.self, &o.dtype,
                            &o.layout, &o.device, &o.pin, &o.grad, &o.format) ? 0 : -1;
}

static bool given(PyObject *const *values, int place) {
    return place >= 0 && values[place] != Py_None;
}

// Is the value of this context variable that object?
static int holds(PyObject *variable, PyObject *expected) {
    PyObject *found;
    if (PyContextVar_Get(variable, nullptr, &found) < 0) return -1;
    Py_XDECREF(found);
    return found == expected;
}

// Is it the device of that type, without a number?
static bool is_device(PyObject *device, const char *expected) {
    static PyObject *type = PyUnicode_InternFromString("type"),
                    *index = PyUnicode_InternFromString("index");
    if (PyUnicode_CheckExact(device)) return !PyUnicode_CompareWithASCIIString(device, expected);
    Ref name(PyObject_GetAttr(device, type)), number(PyObject_GetAttr(device, index));
    if (!name || !number) return PyErr_Clear(), false;
    return number.get() == Py_None && PyUnicode_Check(name.get()) &&
           !PyUnicode_CompareWithASCIIString(name.get(), expected);
}

enum Place : int { FAILED = -1, UNUSUAL, CPU, META };

static Place place_of(PyObject *device) {
    if (device == core.cpu || is_device(device, "cpu")) return CPU;
    return is_device(device, "meta") ? META : UNUSUAL;
}

// Where the tensor is to be, if the options are those of one with strides, outside of inference mode.
static Place usual_place(const Options &o, PyObject *const *values) {
    if (given(values, o.pin) && values[o.pin] != Py_False) return UNUSUAL;
    if (given(values, o.layout) && values[o.layout] != binding::known.strided) return UNUSUAL;
    if (given(values, o.format) && values[o.format] != binding::known.preserve) return UNUSUAL;
    Place place = CPU;
    if (given(values, o.device)) {
        place = place_of(values[o.device]);
    } else if (o.self < 0) {
        PyObject *found;
        if (PyContextVar_Get(core.device, nullptr, &found) < 0) return FAILED;
        if (!found) return UNUSUAL;
        place = place_of(found);
        Py_DECREF(found);
    }
    int usual = place == UNUSUAL ? 0 : holds(core.inference, Py_False);
    return usual < 0 ? FAILED : usual ? place : UNUSUAL;
}

// The type of numbers; null without an error: not all of them are Python's usual ones.
static PyObject *type_of_numbers(Typed typed, PyObject *const *values, int n) {
    static PyObject *numpy = PyUnicode_InternFromString("numpy");
    bool reals = false, truths = false;
    for (int i = 0; i < n; i++) {
        if (typed == OF_VALUE && i != n - 1) continue;  // the shape before the value
        if (PyFloat_CheckExact(values[i])) reals = true;
        else if (PyBool_Check(values[i])) truths = true;
        else if (!PyLong_CheckExact(values[i])) return nullptr;
    }
    if (reals) return PyObject_GetAttr(core.defaults, numpy);
    return (PyObject *)PyArray_DescrFromType(truths && typed == OF_VALUE ? NPY_BOOL : NPY_INT64);
}

static PyObject *type_of(const Options &o, PyObject *const *values, PyObject *const *canonical,
                         int n) {
    static PyObject *numpy = PyUnicode_InternFromString("numpy");
    if (given(values, o.dtype)) return PyObject_GetAttr(values[o.dtype], numpy);
    switch (o.typed) {
        case DEFAULT:
        case FLOATING: return PyObject_GetAttr(core.defaults, numpy);
        case FIXED: return incref(o.type);
        case OF_SELF: return incref((PyObject *)PyArray_DESCR(
            (PyArrayObject *)slot(values[o.self], core.array)));
    }
    return type_of_numbers(Typed(o.typed), canonical, n);
}

static PyObject *shape_of(PyArrayObject *x) {
    PyObject *shape = PyTuple_New(PyArray_NDIM(x));
    for (int d = 0; shape && d < PyArray_NDIM(x); d++)
        PyTuple_SET_ITEM(shape, d, PyLong_FromSsize_t(PyArray_DIM(x, d)));
    return shape;
}

PyObject *run_factory(const Overload &o, PyObject *const *values) {
    const Options &options = o.options;
    PyObject *out = o.out >= 0 ? values[o.out] : Py_None;
    if (out != Py_None && (options.random || !may_store(out, nullptr, 0))) return nullptr;
    if (options.self >= 0) {
        PyObject *array = slot(values[options.self], core.array);
        if (!array || !PyArray_CheckExact(array) ||
            (options.like && !is_row_major((PyArrayObject *)array)))
            return nullptr;
    }
    Place place = usual_place(options, values);
    if (place <= UNUSUAL || (place == META && (options.hollow == Py_None || out != Py_None))) return nullptr;
    PyObject *canonical[MAX_ARGS];
    Ref held[MAX_ARGS];
    int n = 0;
    if (options.like) {
        held[n].take(shape_of((PyArrayObject *)slot(values[options.self], core.array)));
        if (!(canonical[n] = held[n].get())) return nullptr;
        n++;
    }
    for (int i = 0; i < o.count; i++, n++) {
        const Argument &a = o.arguments[i];
        held[n].take(a.parameter < 0 ? incref(a.constant)
                                     : canonical_value(a.role, values[a.parameter], -1, 0));
        if (!(canonical[n] = held[n].get())) return nullptr;
    }
    Ref type(out == Py_None || given(values, options.dtype)
                 ? type_of(options, values, canonical, n)
                 : incref((PyObject *)PyArray_DESCR((PyArrayObject *)slot(out, core.array))));
    if (!type || !PyArray_DescrCheck(type.get())) return nullptr;
    if (((PyArray_Descr *)type.get())->kind == 'W') return nullptr;  // Python warns of complex32
    bool leaf = given(values, options.grad) && values[options.grad] == Py_True;
    if (leaf && out != Py_None) return nullptr;
    if (leaf && PySet_Contains(core.floating, type.get()) != 1) return nullptr;
    canonical[n] = type.get();
    PyObject *result;
    if (place == META) {
        PyObject *shape_and_type[] = {canonical[0], type.get()};
        result = PyObject_Vectorcall(options.hollow, shape_and_type, 2, nullptr);
        if (!result) return PyErr_Clear(), nullptr;  // the twin says what is wrong
    } else {
        PyObject *array = PyObject_Vectorcall(o.target, canonical, n + 1, nullptr);
        if (!array || array == Py_NotImplemented) return Py_XDECREF(array), nullptr;
        if (out != Py_None) {
            Ref held(array);
            return store(out, array) ? incref(out) : nullptr;
        }
        result = make_tensor(array);
    }
    if (result && leaf) set(result, core.edge, incref(core.leaf));
    return result;
}

}  // namespace calling
