// The runners of calls whose arguments are canonical. Null without an error means that the call is
// not of the common kind, and that nothing has happened yet: the twin in Python does it.
#pragma once
#include "tensors.h"

namespace fast {

// A pointwise op on plain tensors and numbers.
PyObject *run_pointwise(Callable *f, PyObject *const *canonical, Py_ssize_t n);

// Its array, written to `into` (null: to a new one) where the kernel can do that.
PyObject *compute_pointwise(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyArrayObject *into);

// The array of any op that has one result and is no view.
PyObject *compute(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyArrayObject *into);

// The in-place form: the result is written to the first tensor, which is given back.
PyObject *write_inplace(Callable *f, PyObject *const *canonical, Py_ssize_t n);

// With `out=`: the result is written there.
PyObject *write_out(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *out);

// May a result be stored in that tensor without a look at histories, and is its memory none of these?
bool may_store(PyObject *out, PyObject *const *values, Py_ssize_t n);

// Copy an array there, if it is of that shape and type; false without an error: it is not.
bool store(PyObject *out, PyObject *array);

}  // namespace fast
