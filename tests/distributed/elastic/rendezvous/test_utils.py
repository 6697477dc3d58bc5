"""Endpoints, options, timers."""
from __future__ import annotations

import gc
import socket
import threading
import time
from datetime import timedelta

import pytest

from flambeau.distributed.elastic.rendezvous.utils import (
    _delay,
    _matches_machine_hostname,
    _parse_rendezvous_config,
    _PeriodicTimer,
    _try_parse_port,
    parse_rendezvous_endpoint,
)


@pytest.mark.parametrize(("text", "found"), [
    ("", ("localhost", 5)), (None, ("localhost", 5)), ("a", ("a", 5)), ("a:1", ("a", 1)),
    (" a:1", ("a", 1)), ("[::1]:2", ("::1", 2)), ("[::1]", ("::1", 5)), ("a.b-c:0", ("a.b-c", 0)),
    ("1.2.3.4:65535", ("1.2.3.4", 65535)), ("a_b", ("a_b", 5)),
    (" ", ("localhost", 5)), ("a:007", ("a", 7))])
def test_endpoints(text, found):
    assert parse_rendezvous_endpoint(text, 5) == found


@pytest.mark.parametrize(("text", "part"), [
    ("a:b", "port number"), ("a:100000", "port number"), ("a:-1", "port number"),
    (":1", "hostname"), ("a b:1", "hostname"), ("a:", "port number"), ("a:65536", "port number"),
    ("a/b", "hostname"), ("a:1 2", "port number")])
def test_bad_endpoints(text, part):
    with pytest.raises(ValueError, match=f"The {part} of the rendezvous endpoint '{text}' must be"):
        parse_rendezvous_endpoint(text, 5)


@pytest.mark.parametrize(("text", "port"), [
    ("0", 0), ("80", 80), ("", None), ("-1", None), ("1a", None), (" 1", None)])
def test_ports(text, port):
    assert _try_parse_port(text) == port


def test_options():
    assert _parse_rendezvous_config(" a = 1 ,b=2") == {"a": "1", "b": "2"}
    assert _parse_rendezvous_config("") == _parse_rendezvous_config("  ") == {}
    assert _parse_rendezvous_config("a=1,a=2") == {"a": "2"}
    assert _parse_rendezvous_config("a=b=c") == {"a": "b=c"}
    for text in ("a", "a=", "b=1,a= "):
        with pytest.raises(ValueError, match="option 'a' must have a value specified"):
            _parse_rendezvous_config(text)
    for text in ("a=1,,b=2", "=1", ",", "a=1,"):
        with pytest.raises(ValueError, match="must be in format <key1>=<value1>"):
            _parse_rendezvous_config(text)


def test_hosts_of_this_machine():
    for host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        assert _matches_machine_hostname(host)
    assert not _matches_machine_hostname("8.8.8.8") and not _matches_machine_hostname("no.such")


def test_delays():
    begin = time.monotonic()
    _delay(0.01)
    _delay((0.01, 0.02))
    assert time.monotonic() - begin >= 0.019


def test_a_timer_calls():
    calls, enough = [], threading.Event()

    def call(*args, **kwargs):
        calls.append((args, kwargs))
        if len(calls) == 3:
            enough.set()
    timer = _PeriodicTimer(timedelta(seconds=0.01), call, 1, b=2)
    timer.cancel()                          # nothing has begun
    timer.set_name("mine")
    timer.start()
    assert timer.name == "mine" and "mine" in {thread.name for thread in threading.enumerate()}
    assert enough.wait(10)
    timer.cancel()
    timer.cancel()
    assert calls[0] == ((1,), {"b": 2})
    assert "mine" not in {thread.name for thread in threading.enumerate()}


def test_a_timer_begins_once():
    timer = _PeriodicTimer(timedelta(seconds=60), lambda: None)
    assert timer.name is None
    timer.start()
    for call in (timer.start, lambda: timer.set_name("late")):
        with pytest.raises(RuntimeError, match="The timer has already started"):
            call()
    timer.cancel()


def test_a_timer_ends_with_its_owner():
    timer = _PeriodicTimer(timedelta(seconds=60), lambda: None)
    timer.set_name("forgotten")
    timer.start()
    del timer
    gc.collect()
    assert "forgotten" not in {thread.name for thread in threading.enumerate()}
