"""The table of rows, and the two ways to add one."""

ROWS = {}
FLOPS = {}   # of rows that multiply and add, how often

def row(group, name):
    """Register a function that takes `torch` and gives what is to be timed."""
    def register(prepare):
        ROWS[f"{group}: {name}"] = prepare
        return prepare
    return register


def expression(group, code, flops=None, title=None, **make):
    """Register the evaluation of `code` on tensors; `make` says how each name in it is made."""
    def prepare(torch):
        names = {"torch": torch, "F": torch.nn.functional}
        for name, source in make.items():
            names[name] = eval(source, names)
        compiled = compile(code, code, "eval")

        def run():
            return eval(compiled, names)

        run.inputs = [names[name] for name in compiled.co_names if name in make]
        return run
    ROWS[f"{group}: {title or code}"] = prepare
    FLOPS[f"{group}: {title or code}"] = flops


def bytes_moved(run, result):
    """The size of what an expression reads and of what it gives, or None."""
    if not hasattr(run, "inputs"):
        return None
    tensors = [t for t in [*run.inputs, result] if hasattr(t, "element_size")]
    return sum(t.numel() * t.element_size() for t in tensors)
