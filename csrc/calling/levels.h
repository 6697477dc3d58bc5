// Calls while a thread is inside of levels that derive: `vmap` and forward mode. What the levels do
// is said in Python, by `flambeau/transforms`; the common case of batching is done here.
#pragma once
#include "tensors.h"

namespace fast {

// What `flambeau/transforms/batching.py` told us.
struct Deriving {
    PyTypeObject *slice, *batch, *forward;               // BatchedTensor, and the classes of levels
    PyObject *levels, *function_modes, *autocast;        // what this thread has: context variables
    PyObject *batching, *ranks, *hollow;                 // functions of that module
    PyObject *movedim, *reshape, *expand;                // … of ops
};
extern Deriving deriving;

inline bool is_slice(PyObject *object) { return deriving.slice && Py_TYPE(object) == deriving.slice; }

inline bool is_known_tensor(PyObject *object) { return is_plain_tensor(object) || is_slice(object); }

PyObject *whole_of(PyObject *slice);                               // all slices: a new reference
PyObject *slice_like(PyObject *slice, PyObject *whole);            // … of another tensor

// Are this thread's levels all `vmap`s and forward mode, and does nothing else watch? Then the stack
// of them, a new reference; else null, without an error.
PyObject *only_deriving();

// Does no argument override functions, and does nobody watch but levels that derive?
bool all_passive(PyObject *const *args, Py_ssize_t n);

// The call of an op with canonical arguments, in levels that derive; null without an error: it is
// not of that kind.
PyObject *call_in_levels(Callable *f, PyObject *const *canonical, Py_ssize_t n);

void free_batching(struct Batching *batching);
int register_levels(PyObject *module);

}  // namespace fast
