// Where in the user's code something happened: a code object and the offset of an instruction,
// which become a line only when somebody asks. Every node is a Place (where it was made), and a
// counter of writes holds one (where the last write was asked for). The twin in Python is in
// flambeau/_support/source_locations.py.
#include "tensors.h"

namespace fast {

struct Place {
    PyObject_HEAD
    PyCodeObject *code;
    int lasti;
};
PyTypeObject PlaceType = {PyVarObject_HEAD_INIT(nullptr, 0)};

// ---- is this file part of the package? ----------------------------------------------------------

static struct Known {
    PyObject *name;  // kept alive, so that nothing else can come to lie there
    bool internal;
} known[64];

static bool is_internal(PyCodeObject *code) {
    PyObject *name = code->co_filename;
    Known &entry = known[(uintptr_t(name) >> 5) % 64];
    if (entry.name == name) return entry.internal;
    Py_ssize_t n = PyUnicode_GET_LENGTH(core.package);
    entry.internal = PyUnicode_Tailmatch(name, core.package, 0, n, -1) == 1;
    Py_XDECREF(entry.name);
    entry.name = incref(name);
    return entry.internal;
}

// ---- frames -------------------------------------------------------------------------------------

#if PY_VERSION_HEX < 0x030C0000
// As CPython 3.11 lays frames out: looking there makes no frame objects.
struct Frame {
    PyObject *function, *globals, *builtins, *locals;
    PyCodeObject *code;
    PyFrameObject *object;
    Frame *previous;
    _Py_CODEUNIT *instruction;
};

static bool find(PyCodeObject **code, int *lasti) {
    Frame *innermost = (Frame *)PyThreadState_Get()->cframe->current_frame, *frame = innermost;
    if (!frame) return false;
    while (is_internal(frame->code))
        if (!(frame = frame->previous)) {
            frame = innermost;
            break;
        }
    *code = (PyCodeObject *)incref((PyObject *)frame->code);
    *lasti = int((char *)frame->instruction - (char *)_PyCode_CODE(frame->code));
    return true;
}
#else
static bool find(PyCodeObject **code, int *lasti) {
    PyFrameObject *innermost = PyEval_GetFrame();
    if (!innermost) return false;
    Ref frame(incref((PyObject *)innermost));
    *code = PyFrame_GetCode(innermost);
    *lasti = PyFrame_GetLasti(innermost);
    PyCodeObject *found = *code;
    while (is_internal(found)) {
        frame.take((PyObject *)PyFrame_GetBack((PyFrameObject *)frame.get()));
        if (!frame) return true;
        found = PyFrame_GetCode((PyFrameObject *)frame.get());
        Py_DECREF(found);  // the frame holds it
    }
    Py_INCREF(found);
    Py_DECREF(*code);
    *code = found;
    *lasti = PyFrame_GetLasti((PyFrameObject *)frame.get());
    return true;
}
#endif

// ---- stamping -----------------------------------------------------------------------------------

void stamp(PyObject *object) {
    Place *place = (Place *)object;
    PyCodeObject *code, *old = place->code;
    if (!core.package || !find(&code, &place->lasti)) return;
    place->code = code;
    Py_XDECREF((PyObject *)old);
}

// Where this is asked for, or the place of another: `Place()`, `Place(other)`.
static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *) {
    PyObject *place = type->tp_alloc(type, 0);
    if (!place) return nullptr;
    PyObject *other = args && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : nullptr;
    if (other && PyObject_TypeCheck(other, &PlaceType)) {
        ((Place *)place)->lasti = ((Place *)other)->lasti;
        ((Place *)place)->code = ((Place *)other)->code;
        Py_XINCREF((PyObject *)((Place *)other)->code);
    } else {
        stamp(place);
    }
    return place;
}

static void dealloc(PyObject *self) {
    Py_XDECREF((PyObject *)((Place *)self)->code);
    Py_TYPE(self)->tp_free(self);
}

// [versions, place]: one more write.
static int count(PyObject *counter) {
    PyObject *next = PyNumber_Add(PyList_GET_ITEM(counter, 0), one);
    if (!next || PyList_SetItem(counter, 0, next) < 0) return -1;
    PyObject *place = PyList_GET_ITEM(counter, 1);
    if (Py_TYPE(place) == &PlaceType && Py_REFCNT(place) == 1) {
        stamp(place);
        return 0;
    }
    place = make(&PlaceType, nullptr, nullptr);
    return place ? PyList_SetItem(counter, 1, place) : -1;
}

PyObject *counter_of(PyObject *tensor) {
    PyObject *counter = slot(tensor, core.counter);
    if (is_none(counter)) {
        counter = PyList_New(2);
        if (!counter) return nullptr;
        PyList_SET_ITEM(counter, 0, incref(zero));
        PyList_SET_ITEM(counter, 1, incref(Py_None));
        set(tensor, core.counter, counter);
    }
    return counter;
}

int bump(PyObject *tensor) {
    PyObject *counter = counter_of(tensor);
    return counter ? count(counter) : -1;
}

// ---- for Python ---------------------------------------------------------------------------------

static PyObject *bump_one(PyObject *, PyObject *tensor) {
    if (!PyObject_TypeCheck(tensor, core.tensor))
        return PyErr_Format(PyExc_TypeError, "expected a tensor");
    if (bump(tensor) < 0) return nullptr;
    Py_RETURN_NONE;
}

static PyObject *bump_all(PyObject *, PyObject *tensors) {
    Ref sequence(PySequence_Fast(tensors, "expected a sequence of tensors"));
    if (!sequence) return nullptr;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(sequence.get()); i++) {
        PyObject *done = bump_one(nullptr, PySequence_Fast_GET_ITEM(sequence.get(), i));
        if (!done) return nullptr;
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}

// (code, line), or None.
static PyObject *read_place(PyObject *, PyObject *object) {
    if (!PyObject_TypeCheck(object, &PlaceType) || !((Place *)object)->code) Py_RETURN_NONE;
    Place *place = (Place *)object;
    return Py_BuildValue("Oi", place->code, PyCode_Addr2Line(place->code, place->lasti));
}

static PyMethodDef methods[] = {{"bump", bump_one, METH_O, nullptr},
                                {"mark_written", bump_all, METH_O, nullptr},
                                {"read_place", read_place, METH_O, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

int register_places(PyObject *module) {
    PyTypeObject &t = PlaceType;
    t.tp_name = "flambeau._support.source_locations.Place";
    t.tp_basicsize = sizeof(Place);
    t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    t.tp_new = make;
    t.tp_dealloc = dealloc;
    if (PyType_Ready(&t) < 0 || PyModule_AddFunctions(module, methods) < 0) return -1;
    return PyModule_AddObjectRef(module, "Place", (PyObject *)&t);
}

}  // namespace fast
