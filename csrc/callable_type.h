// The types of callables in C: what all of them have in common.
#pragma once
#include "common.h"

#include <cstddef>

// Their function is `call`, and what is set on them lies in `dict`.
template <class Object>
void describe_callable(PyTypeObject &t, const char *name, destructor dealloc, traverseproc traverse,
                       inquiry clear, PyMemberDef *members, PyGetSetDef *getset) {
    t.tp_name = name;
    t.tp_basicsize = sizeof(Object);
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL;
    t.tp_vectorcall_offset = offsetof(Object, call);
    t.tp_dictoffset = offsetof(Object, dict);
    t.tp_call = PyVectorcall_Call;
    t.tp_dealloc = dealloc;
    t.tp_traverse = traverse;
    t.tp_clear = clear;
    t.tp_getattro = PyObject_GenericGetAttr;
    t.tp_setattro = PyObject_GenericSetAttr;
    t.tp_members = members;
    t.tp_getset = getset;
}
