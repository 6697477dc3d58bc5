"""The forward functions of remote modules."""
from types import SimpleNamespace

from flambeau.distributed.nn.jit.templates import remote_module_template
from flambeau.distributed.nn.jit.templates.remote_module_template import (
    get_remote_module_template,
)


def test_the_module_runs_where_it_is():
    reference = SimpleNamespace(local_value=lambda: lambda x, k=1: x + k)
    assert remote_module_template._remote_forward(reference, "cpu", 2, k=5) == 7


def test_the_source():
    text = get_remote_module_template(True)
    source = text.format(
        assign_module_interface_cls="module_interface_cls = None", jit_script_decorator="",
        arg_types="x, n", arrow_and_return_type="", arrow_and_future_return_type="", args="x, n",
        kwargs="")
    found = compile(source.replace("import torch\n", "pass\n"), "template", "exec")
    assert {"_remote_forward", "forward_async", "forward"} <= set(found.co_names)
