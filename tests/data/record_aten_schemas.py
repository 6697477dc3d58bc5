"""Write `flambeau/dispatch/aten/schemas.txt`: the schema of each overload of PyTorch's `aten`, and
what its dispatcher says of it. Run where PyTorch 2.13 is installed.

A line is `name.overload(arguments) -> results  # facts`: the tags, `implicit` and `explicit` for
the kind of a composite's kernel, `structured` for a kernel that serves all dense backends,
`not_compliant` for what lacks `pt2_compliant_tag`, the further backends that have a kernel,
`no_cpu` and `no_meta` where these have none, nor one made of others; `numbers` where a number can
stand for a tensor, `scripted` where TorchScript has more overloads.
"""
from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import torch

BACKENDS = ("QuantizedCPU", "MkldnnCPU", "SparseCPU", "SparseMeta", "SparseCsrCPU",
            "SparseCsrMeta", "NestedTensorCPU")
SHORT = {
    "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None":
        "OPTIONS",
    ", *, Tensor(a!) out) -> Tensor(a!)": " OUT",
}


def facts(name: str, overload: object) -> list[str]:
    tags = {str(tag).removeprefix("Tag.") for tag in overload.tags}
    found = [] if "pt2_compliant_tag" in tags else ["not_compliant"]
    found += sorted(tags - {"pt2_compliant_tag"})
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    for kind in ("Implicit", "Explicit"):
        if has_kernel(name, f"Composite{kind}Autograd"):
            found.append(kind.lower())
    if has_kernel(name, "CompositeExplicitAutogradNonFunctional"):
        found.append("structured")
    if not {"implicit", "explicit", "structured"}.intersection(found):
        found += [f"no_{key.lower()}" for key in ("CPU", "Meta") if not has_kernel(name, key)]
    return found + [key for key in BACKENDS if has_kernel(name, key)]


def takes_numbers(op: object) -> bool:
    """Is a number taken for the first argument that is a tensor?"""
    arguments = op._schema.arguments
    before = [str(argument.type) for argument in arguments]
    if "Tensor" not in before or set(before[:before.index("Tensor")]) - {"number"}:
        return False
    place = before.index("Tensor")
    more = {"no_such_argument": 1} if len(arguments) > place + 1 else {}
    try:
        op(*[1] * (place + 1), **more)
    except Exception as error:
        return not re.search("instead found type 'int'|positional argument", str(error))
    return True


def overload_of(name: str) -> object:
    base, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def main() -> None:
    lines = []
    names = sorted(n for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::"))
    packets = Counter(name.partition(".")[0] for name in names)
    with_numbers = {name.partition(".")[0] for name in names if takes_numbers(overload_of(name))}
    for name in names:
        packet, op = name.partition(".")[0], overload_of(name)
        line = str(op._schema).removeprefix("aten::")
        for long, short in SHORT.items():
            line = line.replace(long, short)
        said = facts(name, op) + ["numbers"] * (packet in with_numbers)
        if packets[packet] == 1 and len(torch._C._jit_get_schemas_for_operator(packet)) > 1:
            said.append("scripted")
        lines.append(f"{line}  # {' '.join(said)}" if said else line)
    path = Path(__file__).parents[2] / "flambeau" / "dispatch" / "aten" / "schemas.txt"
    path.write_text("\n".join(lines) + "\n")
    print(len(lines), path.stat().st_size)


if __name__ == "__main__":
    main()
