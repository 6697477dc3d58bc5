// The types of callables in C: what all of them have in common.
#pragma once
#include "common.h"

#include <cstddef>

// Their function is `call`; what is asked of them, `getattro` finds.
template <class Object>
void describe_called(PyTypeObject &t, const char *name, destructor dealloc, traverseproc traverse,
                     inquiry clear, getattrofunc getattro, PyMemberDef *members, PyGetSetDef *getset) {
    t.tp_name = name;
    t.tp_basicsize = sizeof(Object);
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
    t.tp_vectorcall_offset = offsetof(Object, call);
    t.tp_call = PyVectorcall_Call;
    t.tp_dealloc = dealloc;
    t.tp_traverse = traverse;
    t.tp_clear = clear;
    t.tp_getattro = getattro;
    t.tp_members = members;
    t.tp_getset = getset;
}

// Of those on which things are set, which lie in `dict`.
template <class Object>
void describe_callable(PyTypeObject &t, const char *name, destructor dealloc, traverseproc traverse,
                       inquiry clear, PyMemberDef *members, PyGetSetDef *getset) {
    describe_called<Object>(t, name, dealloc, traverse, clear, PyObject_GenericGetAttr, members, getset);
    t.tp_dictoffset = offsetof(Object, dict);
    t.tp_setattro = PyObject_GenericSetAttr;
}

// What an object does not have, the one that it stands for says: its name, documentation, signature.
inline PyObject *attribute_of_either(PyObject *self, PyObject *other, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
    PyErr_Clear();
    return PyObject_GetAttr(other, name);
}
