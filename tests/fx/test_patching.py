"""Functions that are recorded while they are in place."""
import math

import pytest

from flambeau import fx
from flambeau.fx import _patching


def test_proxies_are_found_inside_containers():
    proxy = fx.Proxy(fx.Graph().placeholder("x"))
    for values in ((proxy,), ([1, (proxy,)],), ({"a": [proxy]},), (slice(0, proxy),)):
        assert _patching._find_proxy(*values) is proxy
    assert _patching._find_proxy(1, [2], {"a": 3}, slice(4)) is None


def test_calls_with_a_proxy_are_recorded():
    graph = fx.Graph()
    proxy = fx.Proxy(graph.placeholder("x"))
    hypot = _patching._recording(math.hypot)
    assert hypot(3, 4) == 5 and len(graph.nodes) == 1
    node = hypot(proxy, 4).node
    assert node.target is math.hypot and node.args == (proxy.node, 4)
    assert node.meta["is_wrapped"]


def test_what_was_there_is_put_back():
    class Place:
        value = 1
    names = {"kept": 1}
    with pytest.raises(ValueError, match="stop"), _patching._patched(
            [(Place, "value", 2), (names, "kept", 2), (names, "new", 3), (names, "new", 4)]):
        assert Place.value == 2 and names == {"kept": 2, "new": 4}
        raise ValueError("stop")
    assert Place.value == 1 and names == {"kept": 1}
