// `x.abs`, kept: a method of one tensor. What PyTorch says of a wrong call to it names the tensor's
// type, where `x.abs(1)`, which binds nothing, names the class that the method is of.
// Without C it is a method as of any class of Python, where the two cannot be told apart.
#include "callable_type.h"
#include "calling/calling.h"

#include <algorithm>
#include <cstring>

#include <structmember.h>

using namespace fast;

namespace calling {

struct BoundMethod {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *function, *self, *weakrefs;
};
static PyTypeObject BoundMethodType = {PyVarObject_HEAD_INIT(nullptr, 0)};

// The name of a type without its module.
static const char *name_of(PyTypeObject *type) {
    const char *dot = std::strrchr(type->tp_name, '.');
    return dot ? dot + 1 : type->tp_name;
}

// The error of a call, in the words that the twin has for it.
static PyObject *reworded(BoundMethod *m, Py_ssize_t n, bool named) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    Ref twin(PyObject_GetAttrString(m->function, "twin"));
    Ref better(twin ? PyObject_CallMethod(twin.get(), "refused_by", "OnO", m->self, n,
                                          named ? Py_True : Py_False) : nullptr);
    if (!better || better.get() == Py_None) {
        PyErr_Restore(type, value, trace);
        return nullptr;
    }
    Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
    PyErr_SetObject((PyObject *)Py_TYPE(better.get()), better.get());
    return nullptr;
}

static PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {
    BoundMethod *m = (BoundMethod *)self;
    Py_ssize_t n = PyVectorcall_NARGS(nargsf), named = names ? PyTuple_GET_SIZE(names) : 0;
    PyObject *few[8], **all = few, *result;
    if (nargsf & PY_VECTORCALL_ARGUMENTS_OFFSET) {
        PyObject **before = const_cast<PyObject **>(args) - 1, *saved = *before;
        *before = m->self;
        result = PyObject_Vectorcall(m->function, before, n + 1, names);
        *before = saved;
    } else {
        if (n + named >= 8) all = (PyObject **)PyMem_Malloc((n + named + 1) * sizeof(PyObject *));
        if (!all) return PyErr_NoMemory();
        all[0] = m->self;
        std::copy(args, args + n + named, all + 1);
        result = PyObject_Vectorcall(m->function, all, n + 1, names);
        if (all != few) PyMem_Free(all);
    }
    if (result || (!n && !named) || !PyErr_ExceptionMatches(PyExc_TypeError)) return result;
    return reworded(m, n, named);
}

PyObject *bind_method(PyObject *function, PyObject *self) {
    BoundMethod *m = PyObject_GC_New(BoundMethod, &BoundMethodType);
    if (!m) return nullptr;
    m->call = call, m->function = incref(function), m->self = incref(self), m->weakrefs = nullptr;
    PyObject_GC_Track((PyObject *)m);
    return (PyObject *)m;
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((BoundMethod *)self)->function);
    Py_VISIT(((BoundMethod *)self)->self);
    return 0;
}

static int clear(PyObject *self) {
    Py_CLEAR(((BoundMethod *)self)->function);
    Py_CLEAR(((BoundMethod *)self)->self);
    return 0;
}

static void dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    if (((BoundMethod *)self)->weakrefs) PyObject_ClearWeakRefs(self);
    clear(self);
    PyObject_GC_Del(self);
}

static PyObject *repr(PyObject *self) {
    BoundMethod *m = (BoundMethod *)self;
    Ref name(PyObject_GetAttrString(m->function, "__name__"));
    return name ? PyUnicode_FromFormat("<built-in method %U of %s object at %p>", name.get(),
                                       name_of(Py_TYPE(m->self)), m->self) : nullptr;
}

static PyObject *compare(PyObject *self, PyObject *other, int op) {
    if (Py_TYPE(other) != &BoundMethodType || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
    BoundMethod *a = (BoundMethod *)self, *b = (BoundMethod *)other;
    return PyBool_FromLong((a->function == b->function && a->self == b->self) == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self) {
    BoundMethod *m = (BoundMethod *)self;
    return _Py_HashPointer(m->function) ^ _Py_HashPointer(m->self);
}

static PyObject *attribute(PyObject *self, PyObject *name) {
    return attribute_of_either(self, ((BoundMethod *)self)->function, name);
}

static PyObject *of_function(PyObject *self, void *name) {
    return PyObject_GetAttrString(((BoundMethod *)self)->function, (const char *)name);
}

static PyObject *qualified(PyObject *self, void *) {
    Ref name(of_function(self, (void *)"__name__"));
    return name ? PyUnicode_FromFormat("%s.%U", name_of(Py_TYPE(((BoundMethod *)self)->self)),
                                       name.get()) : nullptr;
}

// That of the function, without the tensor.
static PyObject *signature(PyObject *self, void *) {
    Ref whole(of_function(self, (void *)"__signature__"));
    Ref parameters(whole ? PyObject_GetAttrString(whole.get(), "parameters") : nullptr);
    Ref values(parameters ? PyMapping_Values(parameters.get()) : nullptr);
    Ref replace(values ? PyObject_GetAttrString(whole.get(), "replace") : nullptr);
    if (!replace || PyList_SetSlice(values.get(), 0, 1, nullptr) < 0) return nullptr;
    Ref nothing(PyTuple_New(0)), named(Py_BuildValue("{sO}", "parameters", values.get()));
    return nothing && named ? PyObject_Call(replace.get(), nothing.get(), named.get()) : nullptr;
}

static PyObject *reduce(PyObject *self, PyObject *) {
    PyObject *get = PyDict_GetItemString(PyEval_GetBuiltins(), "getattr");
    Ref name(of_function(self, (void *)"__name__"));
    return get && name ? Py_BuildValue("O(OO)", get, ((BoundMethod *)self)->self, name.get())
                       : nullptr;
}

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundMethod, call), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(BoundMethod, weakrefs), READONLY, nullptr},
    {"__self__", T_OBJECT, offsetof(BoundMethod, self), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
static PyGetSetDef getset[] = {
    {"__doc__", of_function, nullptr, nullptr, (void *)"__doc__"},
    {"__module__", of_function, nullptr, nullptr, (void *)"__module__"},
    {"__qualname__", qualified, nullptr, nullptr, nullptr},
    {"__signature__", signature, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
static PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

int register_bound_methods() {
    PyTypeObject &t = BoundMethodType;
    describe_called<BoundMethod>(t, "builtin_function_or_method", dealloc, traverse, calling::clear, attribute,
                                 members, getset);
    t.tp_weaklistoffset = offsetof(BoundMethod, weakrefs);
    t.tp_repr = repr;
    t.tp_richcompare = compare;
    t.tp_hash = hash;
    t.tp_methods = methods;
    return PyType_Ready(&t);
}

}  // namespace calling
