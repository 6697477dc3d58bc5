// Which values of a call belong to which parameters of a schema: the C half of
// `flambeau/schema/arguments.py`. It only ever says yes for what it is sure of; for NumPy's numbers,
// subclasses of Tensor, tensors that stand for numbers, and wrong calls the Python half is asked.
#pragma once
#include "tensors.h"

namespace binding {

constexpr int MAX_PARAMETERS = 24;

enum Kind : uint8_t {
    TENSOR, TENSORS, SCALAR, INT, INTS, FLOAT, BOOL, DTYPE, DEVICE, LAYOUT, MEMORY_FORMAT, STRING,
    GENERATOR, ANY, TENSOR_OR_NUMBER, FLOATS, BOOLS, SCALARS,
    OWN_TENSOR,  // a tensor, also of our subclasses: members take them
    OTHER  // no value but None is sure to be one
};

struct Parameter {
    Kind kind;
    int8_t size;  // of a list: how many elements a single value stands for
    bool nullable, by_name;
    PyObject *name, *spellings;  // spellings: NumPy's names, a tuple or null
    PyObject *value;             // the default; null: must be given
};

struct Signature {
    int count = 0, positions = 0;
    bool one_by_one = false;  // x.view(2, 3)
    Parameter *parameters = nullptr;
};

// The values of a call, one for each parameter, borrowed but for a tuple of numbers given one by one.
struct Bound {
    PyObject *values[MAX_PARAMETERS];
    fast::Ref numbers;
};

enum class Answer { NO, YES, UNSURE };  // with an error set: UNSURE

// From [(kind, size, nullable, by_name, name, spellings, has_default, default)…]; -1: an error.
// Of a method, the first parameter is the tensor before the dot.
int read(PyObject *description, bool method, Signature &signature);
void release(Signature &signature);
Answer bind(const Signature &signature, PyObject *const *args, Py_ssize_t n, PyObject *names,
            Bound &bound);

// While it lives, what `vmap` gives for one slice is a tensor too.
class TakesSlices {
    bool before;

  public:
    TakesSlices();
    TakesSlices(const TakesSlices &) = delete;
    ~TakesSlices();
};

// What only Python knows; told once.
struct Known {
    PyTypeObject *dtype, *device, *layout, *memory_format, *generator, *size;
    PyObject *strided, *preserve;  // the layout and the memory format that change nothing
    PyObject *contiguous, *channels_last, *channels_last_3d;  // the other memory formats
};
extern Known known;

}  // namespace binding
