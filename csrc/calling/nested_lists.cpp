// Nested lists of numbers as arrays: `torch.tensor([[1, 2], [3, 4]])`.
#include "tensors.h"

#include <type_traits>

namespace fast {

static bool is_list(PyObject *x) { return PyList_CheckExact(x) || PyTuple_CheckExact(x); }

// What the numbers of `data` are; 0: not all ints and floats, or not of this shape.
enum Numbers : int { OTHER = 0, INTS = 1, REALS = 2 };

static int look(PyObject *data, const npy_intp *shape, int nd) {
    if (PySequence_Fast_GET_SIZE(data) != shape[0]) return OTHER;
    PyObject **items = PySequence_Fast_ITEMS(data);
    int found = INTS;
    for (npy_intp i = 0; i < shape[0]; i++) {
        int kind = nd > 1 ? (is_list(items[i]) ? look(items[i], shape + 1, nd - 1) : OTHER)
                   : PyFloat_CheckExact(items[i]) ? REALS
                   : PyLong_CheckExact(items[i])  ? INTS
                                                  : OTHER;
        if (!kind) return OTHER;
        if (kind > found) found = kind;
    }
    return found;
}

template <class T>
static bool fill(PyObject *data, int nd, T *&to) {
    Py_ssize_t n = PySequence_Fast_GET_SIZE(data);
    PyObject **items = PySequence_Fast_ITEMS(data);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (nd > 1) {
            if (!fill(items[i], nd - 1, to)) return false;
        } else if constexpr (std::is_floating_point_v<T>) {
            double value = PyFloat_CheckExact(items[i]) ? PyFloat_AS_DOUBLE(items[i])
                                                        : PyLong_AsDouble(items[i]);
            *to++ = T(value);
        } else {
            *to++ = PyLong_AsLongLong(items[i]);
        }
        if (PyErr_Occurred()) return false;
    }
    return true;
}

// read_numbers(data, dtype): nested lists of floats (and ints) as an array of `dtype`, float32 or
// float64, or of ints as int64; None where NumPy has to look.
PyObject *read_numbers(PyObject *, PyObject *const *args, Py_ssize_t n) {
    if (n != 2 || !PyArray_DescrCheck(args[1]) || !is_list(args[0])) Py_RETURN_NONE;
    npy_intp shape[8];
    int nd = 0;
    for (PyObject *data = args[0]; is_list(data); data = PySequence_Fast_GET_ITEM(data, 0)) {
        if (nd == 8 || !PySequence_Fast_GET_SIZE(data)) Py_RETURN_NONE;
        shape[nd++] = PySequence_Fast_GET_SIZE(data);
    }
    int kind = look(args[0], shape, nd), type = ((PyArray_Descr *)args[1])->type_num;
    if (kind == OTHER || (kind == REALS && type != NPY_FLOAT && type != NPY_DOUBLE)) Py_RETURN_NONE;
    PyArrayObject *array =
        (PyArrayObject *)PyArray_SimpleNew(nd, shape, kind == INTS ? NPY_INT64 : type);
    if (!array) return nullptr;
    void *to = PyArray_DATA(array);
    bool filled = kind == INTS          ? fill(args[0], nd, *(int64_t **)&to)
                  : type == NPY_FLOAT ? fill(args[0], nd, *(float **)&to)
                                      : fill(args[0], nd, *(double **)&to);
    if (filled) return (PyObject *)array;
    PyErr_Clear();  // a number that does not fit: the caller says so
    Py_DECREF(array);
    Py_RETURN_NONE;
}

}  // namespace fast
