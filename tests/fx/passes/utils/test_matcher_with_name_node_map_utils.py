"""Patterns that name their nodes."""
import pytest

import flambeau
from flambeau.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap

X = flambeau.ones(2)


def exported(function):
    class Called(flambeau.nn.Module):
        def forward(self, x):
            return function(x)
    return flambeau.export.export(Called(), (X,)).module()


def test_matches_say_which_nodes_the_names_are():
    def pattern(x):
        sine = x.sin()
        result = sine.exp()
        return result, {"sine": sine, "result": result}
    target = exported(lambda x: x.cos().sin().exp() * 2)
    match, = SubgraphMatcherWithNameNodeMap(exported(pattern)).match(target.graph)
    assert {name: node.name for name, node in match.name_node_map.items()} == {
        "sine": "sin", "result": "exp"}


def test_patterns_without_names_are_refused():
    for function, message in ((lambda x: x.sin(), "to return a tuple"),
                              (lambda x: (x.sin(), x.cos()), "to have a dict output")):
        with pytest.raises(AssertionError, match=message):
            SubgraphMatcherWithNameNodeMap(exported(function))
