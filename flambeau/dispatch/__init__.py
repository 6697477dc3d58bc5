"""From a public call to an op.

A declaration (`declaration.op`) states an op by PyTorch's schemas, one for each overload, its
kernel and its derivatives. From the schemas follow the public function, the method, the in-place
and the `out=` form, and the names under which modes and compilers know the op. The chapters:

    declaration   what is declared, and the ops that are made of it at first use
    canonical     how users' values become what kernels and formulas get
    factory       functions that make tensors of sizes and numbers
    function      the call: bind, make canonical, run; the twin of `csrc/calling/function.cpp`
"""
