"""Convolutions, transposed ones, and those that learn their channels from their input."""
from module_tests import ModuleTests
from nn_cases import Cases, warmed

cases = Cases()
IMAGES = {1: (2, 4, 7), 2: (2, 4, 6, 5), 3: (1, 4, 4, 5, 3)}
for n, shape in IMAGES.items():
    conv = lambda t, *args, name=f"Conv{n}d", **options: getattr(t.nn, name)(*args, **options)
    back = lambda t, *args, name=f"ConvTranspose{n}d", **options: getattr(t.nn, name)(
        *args, **options)
    cases(f"Conv{n}d", lambda t, conv=conv: conv(t, 4, 6, 3), shape)
    cases(f"Conv{n}d-options", lambda t, conv=conv: conv(
        t, 4, 6, 2, stride=2, padding=1, dilation=2, groups=2, bias=False), shape)
    cases(f"Conv{n}d-same", lambda t, conv=conv: conv(t, 4, 2, 2, padding="same"), shape)
    cases(f"Conv{n}d-unbatched", lambda t, conv=conv: conv(t, 4, 2, 2), shape[1:])
    cases(f"ConvTranspose{n}d", lambda t, back=back: back(t, 4, 3, 2), shape)
    cases(f"ConvTranspose{n}d-options", lambda t, back=back: back(
        t, 4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, dilation=2), shape)
    cases(f"ConvTranspose{n}d-output_size", lambda t, back=back: back(t, 4, 2, 3, stride=2), shape,
          call={"output_size": [2 * size + 2 for size in shape[2:]]})
    for name in (f"LazyConv{n}d", f"LazyConvTranspose{n}d"):
        cases(name, lambda t, name=name, shape=shape: warmed(t, name, (3, 2), shape), shape)
for mode in ("reflect", "replicate", "circular"):
    cases(f"Conv2d-{mode}", lambda t, mode=mode: t.nn.Conv2d(
        4, 2, 3, padding=(2, 1), padding_mode=mode), IMAGES[2])


class TestLayers(ModuleTests):
    cases = cases
