// Calls of Fortran routines by their address: all arguments are pointers, the lengths of strings
// follow at the end. `kernels/linalg/fortran.py` finds the routines.
#include "common.h"

#include <utility>

namespace {

constexpr int MOST = 24;
using Call = void (*)(void *, void **);

template <size_t>
using Pointer = void *;

template <size_t... I>
void call(void *routine, void **given) {
    ((void (*)(Pointer<I>...))routine)(given[I]...);
}

template <size_t... I>
constexpr Call caller(std::index_sequence<I...>) {
    return call<I...>;
}

template <size_t... N>
Call caller_of(int count, std::index_sequence<N...>) {
    static constexpr Call callers[] = {caller(std::make_index_sequence<N>())...};
    return callers[count];
}

// What one argument points to: a letter, an integer kept here, each item of an array in turn, or an
// array that all items share (in a tuple of its own).
struct Argument {
    void *at;
    npy_intp step;
    int64_t wide;
    int32_t narrow;
};

bool read(PyObject *object, bool is_wide, Argument *a, npy_intp *items) {
    a->step = 0;
    if (PyBytes_CheckExact(object)) {
        a->at = PyBytes_AS_STRING(object);
    } else if (PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 1 &&
               PyArray_Check(PyTuple_GET_ITEM(object, 0))) {
        a->at = PyArray_DATA((PyArrayObject *)PyTuple_GET_ITEM(object, 0));
    } else if (PyArray_Check(object)) {
        PyArrayObject *array = (PyArrayObject *)object;
        npy_intp n = PyArray_NDIM(array) ? PyArray_DIM(array, 0) : -1;
        if (n < 0 || (*items >= 0 && n != *items)) {
            PyErr_SetString(PyExc_ValueError, "arrays need one first dimension in common");
            return false;
        }
        *items = n, a->at = PyArray_BYTES(array), a->step = PyArray_STRIDE(array, 0);
    } else {
        long long value = PyLong_AsLongLong(object);
        if (value == -1 && PyErr_Occurred()) return false;
        a->wide = value, a->narrow = int32_t(value);
        a->at = is_wide ? (void *)&a->wide : (void *)&a->narrow;
    }
    return true;
}

// fortran_call(address, are integers of 64 bits?, arguments)
PyObject *fortran_call(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 3 || !PyTuple_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "fortran_call takes an address, a bool and a tuple");
    void *routine = PyLong_AsVoidPtr(args[0]);
    if (!routine) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "no routine");
        return nullptr;
    }
    int n = int(PyTuple_GET_SIZE(args[2])), letters = 0;
    Argument arguments[MOST];
    void *given[MOST];
    npy_intp items = -1;
    if (n > MOST) return PyErr_Format(PyExc_ValueError, "too many arguments");
    for (int i = 0; i < n; i++) {
        PyObject *object = PyTuple_GET_ITEM(args[2], i);
        if (!read(object, args[1] == Py_True, &arguments[i], &items)) return nullptr;
        given[i] = arguments[i].at, letters += PyBytes_CheckExact(object);
    }
    if (n + letters > MOST) return PyErr_Format(PyExc_ValueError, "too many arguments");
    for (int i = 0; i < letters; i++) given[n + i] = (void *)1;
    Call run = caller_of(n + letters, std::make_index_sequence<MOST + 1>());
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS;
    for (npy_intp item = 0; item < items; item++) {
        run(routine, given);
        for (int i = 0; i < n; i++) given[i] = (char *)given[i] + arguments[i].step;
    }
    NPY_END_THREADS;
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"fortran_call", (PyCFunction)(void (*)())fortran_call, METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int register_fortran(PyObject *module) { return PyModule_AddFunctions(module, methods); }
