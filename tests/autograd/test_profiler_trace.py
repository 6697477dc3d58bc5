"""Traces of profiles as files."""

import gzip
import json

import flambeau
from flambeau.autograd.profiler import profile
from flambeau.profiler import profile as step_profile


def test_chrome_trace(tmp_path):
    with profile() as prof:
        flambeau.ones(2).exp()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    shown = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [e["name"] for e in shown] == ["aten::ones", "aten::exp"]
    assert {"ts", "dur", "pid", "tid", "cat", "args"} <= shown[0].keys()


def test_operations_are_counted():
    x, w, image = flambeau.ones(3, 4), flambeau.ones(4, 5), flambeau.ones(2, 2, 6, 6)
    conv = flambeau.nn.Conv2d(2, 4, 3, padding=1, stride=2, groups=2)
    with profile(with_flops=True) as prof:
        x @ w, x * x, conv(image)
    flops = {e.key: e.flops for e in prof.key_averages() if e.flops}
    assert flops == {"aten::mm": 120, "aten::mul": 12, "aten::conv2d": 1296}
    assert "Total FLOPs" in prof.key_averages().table()


def test_trace_of_a_backward(tmp_path):
    x = flambeau.ones(2, requires_grad=True)
    with step_profile(record_shapes=True) as prof:
        x.exp().sum().backward()
    prof.add_metadata_json("run", '{"seed": 3}')
    path = tmp_path / "trace.json.gz"
    prof.export_chrome_trace(str(path))
    trace = json.loads(gzip.decompress(path.read_bytes()))
    assert trace["run"] == {"seed": 3} and trace["record_shapes"] == 1
    arrows = [e for e in trace["traceEvents"] if e.get("cat") == "fwdbwd"]
    assert [e["ph"] for e in arrows] == ["s", "f"] * 2
    exp = next(e for e in trace["traceEvents"] if e["name"] == "aten::exp")
    assert exp["args"]["Input Dims"] == [[2]] and exp["args"]["Sequence number"] >= 0
