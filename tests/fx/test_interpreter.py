"""Running graphs node by node, and making others of them."""
from __future__ import annotations

import pytest
from fx_cases import Net

import flambeau
import flambeau as torch
from flambeau import fx


def test_interpreter_and_transformer():
    net = Net()
    module = fx.symbolic_trace(net)
    x = flambeau.randn(3, 2)
    assert flambeau.equal(fx.Interpreter(module).run(x), net(x))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(module).run()

    class Double(fx.Transformer):
        def call_module(self, target, args, kwargs):
            return 2 * super().call_module(target, args, kwargs)
    made = Double(module).transform()
    expected = 2 * net.inner[1](2 * net.inner[0](x @ net.weight)) + net.shift
    assert flambeau.allclose(made(x), expected)


def test_arguments():
    run = fx.Interpreter(fx.symbolic_trace(lambda x, y=2: x + y)).run
    assert run(1) == 3 and run(1, 5) == 6
    assert fx.Interpreter(fx.symbolic_trace(lambda *x: x[0] + x[1])).run(1, 2) == 3
    given = [1, 4]
    interpreter = fx.Interpreter(fx.symbolic_trace(lambda x, y: x + y))
    assert interpreter.boxed_run(given) == 5 and given == []
    x, _ = interpreter.graph.find_nodes(op="placeholder")
    assert interpreter.run(4, initial_env={x: 3}) == 7


@pytest.mark.parametrize(("collect", "left"), [(True, {"output": 4}),
                                               (False, {"x": 1, "add": 2, "mul": 4, "output": 4})])
def test_values_are_dropped_after_their_last_use(collect, left):
    interpreter = fx.Interpreter(fx.symbolic_trace(lambda x: (x + 1) * 2),
                                 garbage_collect_values=collect)
    interpreter.run(1)
    assert {node.name: value for node, value in interpreter.env.items()} == left


@pytest.mark.parametrize(("program", "value", "error", "message"), [
    (lambda x: x @ x, torch.ones(2, 3), RuntimeError,
     r"shapes cannot be multiplied.*While executing %matmul : \[num_users=1\] = call_function"
     r"\[target=operator.matmul\]\(args = \(%x, %x\), kwargs = {}\)\nOriginal traceback:\nNone"),
    (lambda x: x["b"], {"a": 1}, RuntimeError, "^b\n\nWhile executing %getitem"),   # no KeyError
    (lambda x: x.nothing(), 1, AttributeError, "'int' .* 'nothing'\n\nWhile executing %nothing"),
])
def test_errors_say_where(program, value, error, message):
    interpreter = fx.Interpreter(fx.symbolic_trace(program))
    with pytest.raises(error, match=f"(?s){message}"):
        interpreter.run(value)
    interpreter.extra_traceback = False
    with pytest.raises((error, KeyError)) as found:
        interpreter.run(value)
    assert "While executing" not in str(found.value)


def test_boxed_runs_take_all_arguments():
    gm = fx.symbolic_trace(lambda x, y: x + y)
    for given, word in ([1], "missing"), ([1, 2, 3], "extra"):
        with pytest.raises(RuntimeError, match=rf"received {len(given)} \({word} arguments"):
            fx.Interpreter(gm).boxed_run(given)
