"""Batch normalization."""
from module_tests import ModuleTests
from nn_cases import Cases, warmed

cases = Cases()
IMAGES = {1: (4, 6, 5), 2: (3, 6, 4, 2), 3: (2, 6, 2, 3, 2)}
for name, shape in {f"BatchNorm{n}d": shape for n, shape in IMAGES.items()}.items():
    cases.plain(name, shape, options="6")
    cases(f"{name}-options", lambda t, name=name: getattr(t.nn, name)(
        6, eps=1e-3, momentum=0.3, affine=True, track_running_stats=True), shape)
    cases(f"{name}-eval", lambda t, name=name: getattr(t.nn, name)(6, affine=True, bias=False),
          shape, eval=True)
    cases(f"Lazy{name}", lambda t, name=name, s=shape: warmed(t, f"Lazy{name}", (), s), shape)
cases("BatchNorm1d-2D", lambda t: t.nn.BatchNorm1d(6, momentum=None), (5, 6))
cases("BatchNorm2d-not-affine", lambda t: t.nn.BatchNorm2d(6, affine=False), IMAGES[2])
cases("BatchNorm2d-no-stats", lambda t: t.nn.BatchNorm2d(6, track_running_stats=False), IMAGES[2])
cases("SyncBatchNorm", lambda t: t.nn.SyncBatchNorm(6), IMAGES[2], eval=True)


class TestLayers(ModuleTests):
    cases = cases
