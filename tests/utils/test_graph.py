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


def test_names_of_modules_and_of_tensors_on_the_way():
    layer = flambeau.nn.Linear(2, 1)
    hidden = layer(flambeau.ones(3, 2))
    assert str(draw(hidden.exp(), names=layer)).splitlines()[-1].strip().startswith("weight  ")
    assert "hidden: addmm  " in str(draw(hidden.exp(), names={"hidden": hidden}))


def test_which_result_goes_on():
    x = flambeau.eye(2).requires_grad_()
    _, s, vh = flambeau.linalg.svd(x)
    drawing = draw((s.sum(), vh.sum()))
    assert str(drawing).splitlines() == [
        "sum  torch.float32 []",
        "linalg_svd[1]  torch.float32 [2, 2], torch.float32 [2], torch.float32 [2, 2]  (1)",
        "leaf  torch.float32 [2, 2]", "sum  torch.float32 []", "linalg_svd[2]  ↑1"]
    assert '[label="2"]' in drawing.dot() and ">1</text>" in drawing.svg()
    assert str(draw(s)).startswith("linalg_svd[1]  ")


def test_what_is_saved_and_freed():
    x = flambeau.ones(2, 3, requires_grad=True)
    y = x * x.exp()
    assert "saves other [2, 3], self [2, 3]" in str(draw(y, saved=True))
    with flambeau.autograd.graph.saved_tensors_hooks(lambda t: 0, lambda t: x):
        assert "saves result packed" in str(draw(x.exp(), saved=True))
    assert "saves tensors_from1 [1]" in str(draw(x[flambeau.tensor([0])], saved=True))
    y.sum().backward()
    assert "mul  torch.float32 [2, 3]  freed" in str(draw(y, saved=True))


def test_writes_to_views_functions_and_hooks():
    x = flambeau.ones(4, requires_grad=True)
    y = x.clone()
    y[:2].mul_(3)
    assert str(draw(y)).startswith("copy_slices(mul)  torch.float32 [4]\n")

    class MyFunction(flambeau.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

    z = MyFunction.apply(x)
    z.register_hook(print)
    assert str(draw(z, saved=True)) == ("MyFunction  torch.float32 [4]  hooks  "
                                        "saves saved_tensors[0] [4]\nleaf  torch.float32 [4]")
    x.register_post_accumulate_grad_hook(print)
    assert str(draw(z)).endswith("leaf  torch.float32 [4]  hooks")


def test_depth():
    x = flambeau.ones(2, requires_grad=True)
    y = (x.exp() + x).log()
    drawing = draw(y, depth=1)
    assert str(drawing) == "log  torch.float32 [2]\nadd  torch.float32 [2]\n…"
    assert len(drawing) == 2 and "…" in drawing.svg() and "…" in drawing.dot()
    ElementTree.fromstring(drawing.svg())
    assert str(draw(y, depth=10)) == str(draw(y))


def test_labels_in_dot_are_quoted():
    x = flambeau.ones(1, requires_grad=True)
    assert r'label="a\"b\\c\ntorch' in draw(x * 1, names={'a"b\\c': x}).dot()


def test_nothing_to_draw():
    with pytest.raises(RuntimeError, match="gradient edge"):
        draw(flambeau.ones(1))
    assert str(draw(flambeau.ones(1, requires_grad=True))) == "leaf  torch.float32 [1]"
