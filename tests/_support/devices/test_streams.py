"""What there is of streams without an accelerator, and names for symbolic numbers."""
import pytest

import flambeau as torch


def test_streams_are_idle():
    stream = torch.Stream("cpu")
    assert repr(stream) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    assert stream.query() and stream == torch.Stream() and hash(stream) == hash(torch.Stream())
    assert stream.synchronize() is None and stream.wait_event(torch.Event()) is None
    with stream as entered:
        assert entered is stream
    for call in (stream.record_event, lambda: stream.wait_stream(stream), torch.Event().record):
        with pytest.raises(RuntimeError, match="doesn't support events"):
            call()
    for kind in (torch.Stream, torch.Event):
        with pytest.raises(RuntimeError, match="not linked with support for cuda"):
            kind("cuda")


def test_events_are_reached():
    event = torch.Event(enable_timing=True)
    assert event.query() and event.wait() is None and event.synchronize() is None
    assert "event_flag=0" in repr(event) and event.device.type == "cpu"
    with pytest.raises(ValueError, match="must be recorded"):
        event.elapsed_time(event)


def test_device_modules():
    assert torch.get_device_module() is torch.cpu
    assert torch.get_device_module(torch.device("cuda")) is torch.cuda
    for wrong, text in ((3, "Invalid value"), ("meta", "corresponding module"), ("x", "Expected")):
        with pytest.raises(RuntimeError, match=text):
            torch.get_device_module(wrong)


def test_other_devices():
    for name, error in (("xpu", AssertionError), ("mtia", AssertionError), ("ipu", RuntimeError)):
        with pytest.raises(error, match="(?i)" + name):
            getattr(torch.ones(2), name)()


def test_symbols():
    assert issubclass(torch.OutOfMemoryError, RuntimeError)
    assert not isinstance(torch.ones(3).shape[0], torch.SymInt)
    for kind in (torch.SymInt, torch.SymFloat, torch.SymBool):
        with pytest.raises(NotImplementedError, match=kind.__name__):
            kind(3)
    assert repr(torch.Tag.pointwise) == "<Tag.pointwise: 16>" and len(torch.Tag) == 20
    assert int(torch.Tag.view_copy) == 19 and torch.Tag.core != 0
