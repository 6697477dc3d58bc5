// What the kinds of calls have in common: the overloads of a public function, and for each what runs
// the call once its arguments are bound. `flambeau/dispatch/function.py` describes them.
#pragma once
#include "binding/binder.h"

namespace calling {

// How a value becomes the argument that kernels and formulas get: `flambeau/dispatch/canonical.py`.
enum Role : uint8_t {
    AS_IS, DIM, NEW_DIM, DIMS, INTS, DTYPE, TENSORS, ALL_DIMS, SIZES, SOME_DIMS, EXTENTS, NUMBER, FLOAT
};

struct Argument {
    int8_t parameter;    // which parameter of the signature; -1: it has none
    Role role;
    PyObject *constant;  // what stands for a parameter that there is none of
};

// What C knows of a factory: see `Factory.facts` in `flambeau/dispatch/factory.py`.
struct Options {
    int typed, like, random, self, dtype, layout, device, pin, grad, format;
    PyObject *type, *hollow;  // of the facts; (shape, type) to a tensor on meta, or None
};

struct Overload;

// A call of that overload; null without an error: the twin is to do it.
using Runner = PyObject *(*)(const Overload &, PyObject *const *values);

struct Overload {
    binding::Signature signature;
    int count;
    Argument *arguments;
    PyObject *target;  // what is called: an op, the body of one that is made of others, a kernel
    PyObject *op;      // of a body, if C may store its result in `out`; else None
    PyObject *facts;   // what else the kind of call is told: see `describe`
    Options options;   // of a factory, from its facts
    Runner run;
    int out;           // the parameter `out`; -1: there is none
    int straight;      // so many arguments by position are a pointwise op's operands; -1: none are
    bool writes;       // is the result written to the first tensor?
    PyObject *prepare; // in levels: what makes the canonical arguments; None: their roles; null: not asked
    bool counts_dims;  // does an argument depend on how many dimensions the first tensor has?
};

// The value of a parameter as a kernel takes it: a new reference; null without an error: the twin
// says what is wrong.
PyObject *canonical_value(Role role, PyObject *value, int ndim, int size);

// A method of one tensor.
PyObject *bind_method(PyObject *function, PyObject *self);
int register_bound_methods();

int read_options(PyObject *facts, Options &o);

PyObject *run_op(const Overload &o, PyObject *const *values);
PyObject *run_prepared(const Overload &o, PyObject *const *values);
PyObject *run_factory(const Overload &o, PyObject *const *values);

}  // namespace calling
