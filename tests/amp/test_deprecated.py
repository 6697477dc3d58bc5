"""The former names of `autocast`, `GradScaler` and the decorators."""
import pytest

import flambeau


def product():
    return flambeau.mm(flambeau.ones(2, 2), flambeau.ones(2, 2)).dtype


def test_former_names():
    from flambeau.cpu.amp import GradScaler, autocast
    from flambeau.cuda.amp import autocast as cuda_autocast
    with pytest.warns(FutureWarning, match="torch.cpu.amp.autocast"), autocast():
        assert product() is flambeau.bfloat16
    with pytest.warns(FutureWarning, match="torch.amp.GradScaler\\('cpu', args"):
        GradScaler()
    with pytest.warns(FutureWarning), pytest.warns(UserWarning), cuda_autocast():
        assert product() is flambeau.float32
    with pytest.warns(DeprecationWarning, match="Please use torch.is_autocast_enabled\\('cpu'\\)"):
        flambeau.is_autocast_cpu_enabled()


def test_classes_are_those_of_amp_and_say_where_they_are():
    from flambeau.cpu.amp import GradScaler, autocast
    assert issubclass(autocast, flambeau.amp.autocast)
    assert issubclass(GradScaler, flambeau.amp.GradScaler)
    assert autocast.__module__ == "torch.cpu.amp.autocast_mode"
    assert GradScaler.__qualname__ == "GradScaler"


def test_a_former_region_takes_a_type():
    from flambeau.cpu.amp import autocast
    with pytest.warns(FutureWarning, match=r"use `torch\.amp\.autocast\('cpu', args"):
        region = autocast(dtype=flambeau.float16)
    with region:
        assert product() is flambeau.float16
    assert product() is flambeau.float32


def test_former_decorators():
    from flambeau.cuda.amp import custom_bwd, custom_fwd
    with pytest.warns(FutureWarning, match=r"custom_fwd\(args\.\.\., device_type='cuda'"):
        @custom_fwd
        def forward(ctx, x):
            return x * 2
    with pytest.warns(FutureWarning, match="custom_bwd"):
        custom_bwd(lambda ctx, grad: grad)

    class Ctx:
        pass

    assert forward(Ctx(), 3) == 6
