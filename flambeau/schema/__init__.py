"""What an op takes and gives, read from its schema.

A schema is one line of text, in PyTorch's own notation:

    cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)

It says more than a Python signature: the types of arguments, which lists a single value may stand
for (`int[1] dim`), which arguments a result shares its memory with (`Tensor(a)`) and which are
written to (`Tensor(a!)`), and the names of several results. The chapters, in reading order:

    parser        the text as data: `Schema` and `Parameter`
    signature     what Python sees of a schema, as function and as method, and in which order
                  overloads are tried
    arguments     binding: which values of a call belong to which parameters
    errors        what a call is told that fits no signature

The extension has the same binder in C (`csrc/binding/`), compiled from the same data at the first
call of a function. It only ever says yes: whatever it is not sure of it leaves to `arguments`.
"""
