"""Tensors and a mode that log which ops they see."""
import flambeau as torch
from flambeau.testing._internal.logging_tensor import (
    LoggingTensor,
    LoggingTensorMode,
    capture_logs,
    capture_logs_with_logging_tensor_mode,
    log_input,
)


def test_tensors_log_a_training_step():
    with capture_logs() as logs:
        x = LoggingTensor(torch.ones(2, 3), requires_grad=True)
        log_input("x", x)
        y = (x * 2).sum()
        y.backward()
    assert logs[:3] == ["$0: f32[2, 3] = input('x')",
                        "$1: f32[2, 3] = torch._ops.aten.mul.Tensor($0, 2)",
                        "$2: f32[] = torch._ops.aten.sum.default($1)"]
    assert logs[4:6] == ["$4: f32[2, 3] = torch._ops.aten.expand.default($3, ['2', '3'])",
                         "$5: f32[2, 3] = torch._ops.aten.mul.Tensor($4, 2)"]
    assert isinstance(x.grad, LoggingTensor) and x.grad.elem.tolist() == [[2, 2, 2]] * 2
    assert repr(x.grad).startswith("LoggingTensor(tensor([[2., 2., 2.]")


def test_a_mode_logs_all_ops():
    with capture_logs_with_logging_tensor_mode() as logs:
        x = torch.cat([torch.ones(1), torch.zeros(1)])
        torch.split(x, 1)
    assert logs[2:] == ["$2: f32[2] = torch._ops.aten.cat.default(['$0', '$1'])",
                        "['$3: f32[1]', '$4: f32[1]'] = torch._ops.aten.split.Tensor($2, 1)"]


def test_where_the_ops_come_from():
    with LoggingTensorMode(), capture_logs(True, python_tb=True) as (logs, places):
        torch.ones(2)
    assert len(logs) == len(places) == 1
    torch.ones(2)
    assert len(logs) == 1
