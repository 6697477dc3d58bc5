"""Runs the programs of `programs.txt` on PyTorch or flambeau and says what came of them."""
import warnings
from pathlib import Path


def programs():
    """A program is a line of statements, apart by semicolons."""
    lines = Path(__file__).with_name("programs.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def data(torch, *shape, dtype=None):
    """Numbers from -3 to 3, no two of them equal."""
    n = 1
    for extent in shape:
        n *= extent
    x = (torch.arange(n, dtype=torch.float64) * 7 % max(n, 1) * 6 + 1) / max(n, 1) - 3
    return x.reshape(shape).to(dtype or torch.float64)


def described(tensor, names, whole=True):
    """All that can be seen of a tensor."""
    def base():
        found = [name for name, other in names.items() if other is tensor._base]
        return None if tensor._base is None else (found or ["unnamed"])[0]

    def node():
        return type(tensor.grad_fn).__name__

    said = [f"{tensor.dtype} {list(tensor.shape)}"]
    if tensor.numel():
        steps = [s for s, n in zip(tensor.stride(), tensor.shape) if n > 1]
        said.append(f"strides {steps} offset {tensor.storage_offset()}")
    for name, see in (("node", node), ("base", base), ("version", lambda: tensor._version),
                      ("leaf", lambda: tensor.is_leaf)) if whole else ():
        try:
            said.append(f"{name} {see()}")
        except RuntimeError as error:
            said.append(f"{name}: {type(error).__name__}")
    plain = tensor.detach().resolve_conj().to_dense()
    values = torch_view_as_real(plain) if plain.is_complex() else plain
    values = values.to(float).flatten().tolist()
    return [", ".join(said), [float(f"{v:.6g}") for v in values]]


def torch_view_as_real(tensor):
    real, imag = tensor.real, tensor.imag
    return real.new_tensor([*real.flatten().tolist(), *imag.flatten().tolist()])


def answer(program, torch):
    """What is seen of the tensors that a program names, or its error."""
    names = {}
    torch.set_default_dtype(torch.float32)
    world = {"torch": torch, "F": torch.nn.functional, "nn": torch.nn,
             "data": lambda *shape, dtype=None: data(torch, *shape, dtype=dtype)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in program.split("; "):
            try:
                exec(statement.replace("\\n", "\n"), world)
            except Exception as error:
                lines = str(error).splitlines() or [""]
                return [type(error).__name__, lines[0].strip()]
        for name, value in world.items():
            values = value if isinstance(value, tuple | list) else [value]
            for i, one in enumerate(values):
                if isinstance(one, torch.Tensor):
                    names[name if values is not value else f"{name}[{i}]"] = one
        found = {name: described(one, names) for name, one in names.items()}
        for name, one in names.items():
            if one.is_leaf and one.grad is not None:
                found[f"{name}.grad"] = described(one.grad, names, False)
    return found
