"""From a public call to an op.

A declaration (`declaration.op`) states an op by PyTorch's schemas, one for each overload, its
kernel and its derivatives. From the schemas follow the public function, the method, the in-place
and the `out=` form, and the names under which modes and compilers know the op. The chapters:

    declaration   what is declared, and the ops that are made of it at first use
    facts         … the words that it may be declared with
    function      the call: bind, make canonical, run; the twin of `csrc/calling/function.cpp`
    canonical     one signature: how users' values are bound, and what kernels and formulas get
    pointwise     ops that go element by element: promotion, broadcasting, numbers as operands
    parts         ops with a kernel that are also made of others
    factory       functions that make tensors of sizes and numbers
    members       what asks or tells what a tensor is, and computes nothing
    python_functions    functions that PyTorch too writes in Python
    aten          the names of PyTorch's dispatcher, for what looks below autograd

A call has two implementations that do the same: these chapters, which are complete, and C, which
does the common calls and leaves all others to them before anything has happened. What is slow to
find out (signatures, roles, types of results) is found out when a function is first called.
"""
