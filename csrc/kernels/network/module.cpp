#include "kernels/network/module.h"
#include "callable_type.h"

#include <structmember.h>

namespace network {

int simd_level() {
#if FLAMBEAU_CLONES
    static const int level = [] {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("x86-64-v4")) return 2;
        return __builtin_cpu_supports("x86-64-v3") ? 1 : 0;
    }();
    return level;
#else
    return 0;
#endif
}

// ---- a compiled function in front of its twin ---------------------------------------------------

namespace {

// What `flambeau.kernels.declaration` makes of a function here: asked first, with as many arguments
// as it takes by position; all else, and what it declines, is for the twin.
struct Front {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *dict, *compiled, *twin;
    Py_ssize_t count;
};
PyTypeObject FrontType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject *call_front(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    Front *f = (Front *)self;
    if (!names && PyVectorcall_NARGS(nargsf) == f->count) {
        PyObject *found = PyObject_Vectorcall(f->compiled, args, f->count, nullptr);
        if (found != Py_NotImplemented) return found;
        Py_DECREF(found);
    }
    return PyObject_Vectorcall(f->twin, args, nargsf, names);
}

int traverse_front(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Front *)self)->dict);
    Py_VISIT(((Front *)self)->compiled);
    Py_VISIT(((Front *)self)->twin);
    return 0;
}

int clear_front(PyObject *self) {
    Py_CLEAR(((Front *)self)->dict);
    return 0;
}

void free_front(PyObject *self) {
    PyObject_GC_UnTrack(self);
    clear_front(self);
    Py_XDECREF(((Front *)self)->compiled);
    Py_XDECREF(((Front *)self)->twin);
    PyObject_GC_Del(self);
}

// network_front(compiled, twin, count)
PyObject *make_front(PyObject *, PyObject *args) {
    PyObject *compiled, *twin;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "OOn", &compiled, &twin, &count)) return nullptr;
    Front *f = PyObject_GC_New(Front, &FrontType);
    if (!f) return nullptr;
    Py_INCREF(compiled), Py_INCREF(twin);
    f->call = call_front, f->dict = nullptr, f->compiled = compiled, f->twin = twin, f->count = count;
    PyObject_GC_Track((PyObject *)f);
    return (PyObject *)f;
}

PyMemberDef front_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Front, call), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Front, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef front_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef front_methods[] = {{"network_front", make_front, METH_VARARGS, nullptr},
                               {nullptr, nullptr, 0, nullptr}};

int register_front(PyObject *module) {
    PyTypeObject &t = FrontType;
    describe_callable<Front>(t, "flambeau.kernels._native.Front", free_front, traverse_front, clear_front,
                             front_members, front_getset);
    if (PyType_Ready(&t) < 0) return -1;
    return PyModule_AddFunctions(module, front_methods);
}

}  // namespace

}  // namespace network

int register_network(PyObject *module) {
    if (network::register_front(module)) return -1;
    for (auto add :
         {register_network_activations, register_network_attention, register_network_convolution,
          register_network_brain_convolution, register_network_ctc, register_network_distances, register_network_fourier, register_network_indexing,
          register_network_losses, register_network_normalization, register_network_pooling,
          register_network_recurrent, register_network_resampling, register_network_searching,
          register_network_softmax, register_network_sorting, register_checked})
        if (add(module)) return -1;
    return 0;
}
