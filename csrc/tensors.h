// The common case of a call in C. Tensor, Node and View stay Python classes: what lies in their
// slots is read and written at the offsets that their member descriptors give. Each path follows a
// Python closure step by step; whatever is not its case it hands to that closure, untouched.
#pragma once
#include "kernels/pointwise/kernel.h"

namespace fast {

// What core/ told us: classes, markers, the lists that are asked before each call, and offsets.
struct Core {
    PyTypeObject *tensor, *view, *node;
    PyTypeObject *slices;                              // the node of a base, a view of which was written
    PyTypeObject *untracked;                           // counters of inference tensors
    PyObject *plain, *floating, *passive, *internal;   // sets of types
    PyObject *interceptors, *saved_tensor_hooks, *node_watchers;    // lists, empty nearly always
    PyObject *leaf, *lazy;                             // what an edge may be: see core/tensor.py
    PyObject *grad_mode, *order;                       // order: the counter of nodes
    PyObject *gradient_edge, *replay_of, *unpack_result;
    PyObject *defaults, *device, *cpu, *inference;     // for new tensors
    PyObject *deriving;                                // may tensors of inference mode be saved?
    PyObject *package;                                 // where our own code lies: a directory
    PyObject *late_bound;                              // the module of what stands above core
    PyObject *output;                                  // the class of one output of several
    Py_ssize_t array, base, counter, edge, view_slot;               // of Tensor
    Py_ssize_t node_dtype, edges, node_order, saved, node_shape;    // of Node
    Py_ssize_t view_node, version, made, replay;                    // of View
};
extern Core core;
extern PyObject *zero, *one;

inline PyObject *&slot(PyObject *object, Py_ssize_t offset) {
    return *reinterpret_cast<PyObject **>(reinterpret_cast<char *>(object) + offset);
}

inline void set(PyObject *object, Py_ssize_t offset, PyObject *stolen) {
    PyObject *old = slot(object, offset);
    slot(object, offset) = stolen;
    Py_XDECREF(old);
}

inline PyObject *incref(PyObject *object) {
    Py_INCREF(object);
    return object;
}

// An owned reference.
class Ref {
    PyObject *object;

  public:
    explicit Ref(PyObject *stolen = nullptr) : object(stolen) {}
    Ref(const Ref &) = delete;
    Ref &operator=(const Ref &) = delete;
    ~Ref() { Py_XDECREF(object); }
    PyObject *get() const { return object; }
    PyObject *release() {
        PyObject *given = object;
        object = nullptr;
        return given;
    }
    void take(PyObject *stolen) {
        PyObject *old = object;
        object = stolen;
        Py_XDECREF(old);
    }
    explicit operator bool() const { return object != nullptr; }
};

inline PyObject *tuple_of(PyObject *const *items, Py_ssize_t n) {
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++) PyTuple_SET_ITEM(tuple, i, incref(items[i]));
    return tuple;
}

inline bool is_none(PyObject *object) { return !object || object == Py_None; }

inline bool is_plain_tensor(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    return type == core.tensor || PySet_Contains(core.plain, (PyObject *)type) == 1;
}

// Are these plain tensors, values of types that override no function, or lists of such? Are slices that
// `vmap` gives taken too?
bool are_passive(PyObject *const *values, Py_ssize_t n, bool slices = false, int depth = 2);

// Some thread has a level or a mode: has this one? See `calling/levels.h`.
bool sees_calls();

// Does a level or a mode of this thread want to see calls?
inline bool intercepted() { return PyList_GET_SIZE(core.interceptors) && sees_calls(); }

// Does a level, a mode or a watcher of nodes? Hooks of saved tensors are called by `record`.
inline bool watched() { return PyList_GET_SIZE(core.node_watchers) || intercepted(); }

// Is there one of these, or hooks of saved tensors, where nodes are made that `record` does not see?
inline bool watched_or_packed() { return PyList_GET_SIZE(core.saved_tensor_hooks) || watched(); }

// One saved value of a node: how it is taken from a call.
struct Saved {
    enum Kind : int8_t {
        TENSOR, PARAM, SHAPE, DTYPE, GEOMETRY, BY_COLUMNS, RESULT, TENSORS, SHAPES, DTYPES
    } kind;
    int8_t where;    // which argument; of several tensors, the first that is saved
    uint64_t users;  // kept only if one of these edges is there
};

constexpr int MAX_SAVED = 12, MAX_ARGS = 24;

// A callable in place of a Python closure, which it keeps as `closure` and calls when in doubt.
struct Callable {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *dict, *weakrefs;
    PyObject *closure, *kernel, *op;
    PyObject *returns;   // None, or of several results the list, the tuple or the named tuple
    PyObject *plain_kernel, *defaults;  // pointwise: the kernel for these parameters; or null
    PyTypeObject *node;
    int tensors;       // how many tensor arguments; -1: a sequence of them
    int nsaved;
    Saved saved[MAX_SAVED];
    uint32_t dtypes;   // a bit for each that the op takes as it is
    uint64_t results;  // of several results a bit for each that has a gradient
    bool differentiable, view, replay;
    // of a pointwise op that is declared by its schema; checked: the twin looks at bools (1), at
    // operands of mixed types (2), at complex numbers (4);
    // raw: the kernel takes numbers; fixed: the result has the type of the first operand;
    // apart: a bit for each operand that is a condition
    bool pointwise, floating, wide, raw, fixed;
    int apart, checked;
    struct Batching *batching;  // how it is batched, once that has been asked for
};
extern PyTypeObject CallableType, PlaceType;

inline PyObject *fall_back(Callable *f, PyObject *const *args, size_t nargsf, PyObject *names) {
    return PyObject_Vectorcall(f->closure, args, nargsf, names);
}

PyObject *make_tensor(PyObject *stolen_array);
PyObject *as_array(PyObject *stolen);                        // a kernel's result as an array
int grad_enabled();                                          // -1: an error
PyObject *edge_of(PyObject *tensor);                         // a new reference, maybe to None
PyObject *own_edge(PyObject *tensor);                        // the same, of a tensor that is no view
bool is_floating(PyObject *array);
PyObject *counter_of(PyObject *tensor);                      // borrowed: [writes, place of the last]
int bump(PyObject *tensor);
void stamp(PyObject *place);                                 // note where in the user's code we are
int register_places(PyObject *module);
int register_scopes(PyObject *module);
int set_variable(PyObject *variable, PyObject *value);       // of a context
bool is_scope(PyObject *object);
size_t entered_scopes();                                     // how many this thread is in
void leave_down_to(size_t height);                           // after an error
int record(Callable *f, PyObject *const *canonical, PyObject *stolen_edges, PyObject *result);

// The inputs of a call: its first arguments, or the items of the first one.
struct TensorArguments {
    PyObject *const *items;
    Py_ssize_t n;
    TensorArguments(const Callable *f, PyObject *const *canonical)
        : items(f->tensors < 0 ? PySequence_Fast_ITEMS(canonical[0]) : canonical),
          n(f->tensors < 0 ? PySequence_Fast_GET_SIZE(canonical[0]) : f->tensors) {}
};

// What recording would refuse to save, refused before anything is written.
int check_saving(Callable *f, PyObject *const *canonical, PyObject *edges);

// The node of an op that has written to `tensor`, which the caller has asked about (`may_rebase`).
int record_write(Callable *f, PyObject *const *canonical, PyObject *stolen_edges, PyObject *tensor);

// May the history of a tensor be replaced by a node without more ado, after a write to it?
bool may_rebase(PyObject *tensor);

// A view's new node, after a write to its base; null without an error: `gradient_edge` is to find it.
PyObject *renew(PyObject *view);

// Of several results, of which only some may be floating: `Output`s of one node.
int record_several(Callable *f, PyObject *const *canonical, PyObject *stolen_edges,
                   PyObject *const *results, Py_ssize_t n);

// A call's results from what its kernel gave.
PyObject *finish(Callable *f, PyObject *const *canonical, Py_ssize_t n, PyObject *stolen);

// The call of an op with canonical arguments on plain tensors, of which nobody is watching; null
// without an error: it is not of that kind.
PyObject *call_plain(Callable *f, PyObject *const *canonical, Py_ssize_t n);

PyObject *call_elementwise(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);
PyObject *call_canonical(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);
PyObject *call_inplace(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);
PyObject *call_apply(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names);
PyObject *read_numbers(PyObject *module, PyObject *const *args, Py_ssize_t n);

}  // namespace fast
