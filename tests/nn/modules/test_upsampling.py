"""Images made larger."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
cases("Upsample", lambda t: t.nn.Upsample(scale_factor=2), (1, 2, 3, 4))
cases("Upsample-size", lambda t: t.nn.Upsample((5, 7), mode="bilinear"), (1, 2, 3, 4))
cases("Upsample-bicubic", lambda t: t.nn.Upsample(scale_factor=(1.5, 2.0), mode="bicubic"),
      (1, 2, 4, 4))
cases("UpsamplingNearest2d", lambda t: t.nn.UpsamplingNearest2d(scale_factor=3), (1, 1, 2, 2))
cases("UpsamplingBilinear2d", lambda t: t.nn.UpsamplingBilinear2d((3, 5)), (1, 2, 2, 3))


class TestLayers(ModuleTests):
    cases = cases
