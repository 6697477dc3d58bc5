"""The CPU as a device among devices."""

import pytest

import flambeau as torch


def test_there_is_one():
    cpu = torch.cpu
    assert cpu.is_available() and cpu.is_initialized() and cpu.device_count() == 1
    assert cpu.current_device() == "cpu"
    assert cpu.synchronize() is None and cpu.set_device("cpu") is None


def test_streams_are_current_inside_of_their_contexts():
    outer, first, second = torch.cpu.current_stream(), torch.cpu.Stream(), torch.cpu.Stream()
    with torch.cpu.stream(first):
        assert torch.cpu.current_stream() is first
        with torch.cpu.stream(second):
            assert torch.cpu.current_stream("cpu") is second
        assert torch.cpu.current_stream() is first
        with torch.cpu.stream(None):
            assert torch.cpu.current_stream() is first
    assert torch.cpu.current_stream() is outer


def test_a_stream_is_left_when_its_block_fails():
    outer = torch.cpu.current_stream()
    with pytest.raises(ZeroDivisionError), torch.cpu.stream(torch.cpu.Stream(priority=2)):
        raise ZeroDivisionError
    assert torch.cpu.current_stream() is outer


def test_events_are_always_reached():
    stream, event = torch.cpu.Stream(), torch.cpu.Event()
    event.record()
    stream.wait_stream(torch.cpu.current_stream())
    stream.wait_event(event)
    event.wait(stream)
    assert event.query() is True and event.synchronize() is None
