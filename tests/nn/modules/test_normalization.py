"""Normalization over layers, groups and neighbours."""
from module_tests import ModuleTests
from nn_cases import Cases

cases = Cases()
IMAGES = {1: (4, 6, 5), 2: (3, 6, 4, 2)}
cases("LayerNorm", lambda t: t.nn.LayerNorm(5), IMAGES[1])
cases("LayerNorm-2D", lambda t: t.nn.LayerNorm((6, 5), eps=1e-3, bias=False), IMAGES[1])
cases("LayerNorm-plain", lambda t: t.nn.LayerNorm(5, elementwise_affine=False), IMAGES[1])
cases("RMSNorm", lambda t: t.nn.RMSNorm(5), IMAGES[1])
cases("RMSNorm-options", lambda t: t.nn.RMSNorm([6, 5], 1e-3, False), IMAGES[1])
cases("GroupNorm", lambda t: t.nn.GroupNorm(3, 6), IMAGES[2])
cases("GroupNorm-plain", lambda t: t.nn.GroupNorm(2, 6, affine=False), IMAGES[1])
cases("GroupNorm-no-bias", lambda t: t.nn.GroupNorm(2, 6, bias=False), IMAGES[1])
cases("LocalResponseNorm", lambda t: t.nn.LocalResponseNorm(3, 0.1), IMAGES[2])
cases("CrossMapLRN2d", lambda t: t.nn.CrossMapLRN2d(3, 0.1), IMAGES[2])
cases("CrossMapLRN2d-even", lambda t: t.nn.CrossMapLRN2d(4, 0.1), IMAGES[2])


class TestLayers(ModuleTests):
    cases = cases
