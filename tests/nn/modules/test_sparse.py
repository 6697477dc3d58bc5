"""Tables of rows, and of bags of rows."""
from module_tests import ModuleTests
from nn_cases import Cases, ints

cases = Cases()
cases("Embedding", lambda t: t.nn.Embedding(7, 3, padding_idx=2), ints(7, (2, 4)))
cases("Embedding-max_norm", lambda t: t.nn.Embedding(7, 3, max_norm=1.0, norm_type=1.0),
      ints(7, (2, 4)))
for mode in ("sum", "mean", "max"):
    cases(f"EmbeddingBag-{mode}", lambda t, mode=mode: t.nn.EmbeddingBag(7, 3, mode=mode),
          ints(7, (6,)), lambda t: t.tensor([0, 2, 3]))
cases("EmbeddingBag-2D", lambda t: t.nn.EmbeddingBag(7, 3, padding_idx=1), ints(7, (2, 4)))


class TestLayers(ModuleTests):
    cases = cases
