import xml.etree.ElementTree as ElementTree

import pytest

import flambeau
from flambeau.utils.graph import draw


@pytest.fixture
def graph():
    w = flambeau.ones(3, 3, requires_grad=True)
    h = (flambeau.ones(2, 3) @ w).tanh()
    return draw(h.sum() + h.mean(), names={"w<1>": w})


def test_text(graph):
    assert str(graph) == """\
add  torch.float32 []
├─ sum  torch.float32 []
│  tanh  torch.float32 [2, 3]  (1)
│  mm  torch.float32 [2, 3]
│  w<1>  torch.float32 [3, 3]
└─ mean  torch.float32 []
   tanh  ↑1"""


def test_svg_is_xml_with_a_box_a_node(graph, tmp_path):
    tree = ElementTree.fromstring(graph._repr_svg_())
    boxes = tree.findall("{http://www.w3.org/2000/svg}rect")
    assert len(boxes) == len(graph) == 6
    graph.save(tmp_path / "graph.svg")
    assert "w&lt;1&gt;" in (tmp_path / "graph.svg").read_text()


def test_dot(graph, tmp_path):
    text = graph.dot()
    assert text.startswith("digraph {") and text.count("->") == 6
    graph.save(tmp_path / "graph.dot")
    with pytest.raises(ValueError, match="a file name ends in"):
        graph.save(tmp_path / "graph.png")


def test_deep_graphs():
    x = flambeau.ones(1, requires_grad=True)
    for _ in range(5000):
        x = x * 1.0
    drawing = draw(x)
    assert len(drawing) == 5001 and len(str(drawing).splitlines()) == 5001
    assert drawing.svg().count("<rect") == 5001


def test_saved(graph):
    x = flambeau.ones(1, requires_grad=True)
    assert "saves" in str(draw(x.exp(), saved=True))
