"""What stands behind `torch.library`."""
from flambeau._support.lazy.modules import lazy_package

__getattr__ = lazy_package(
    __name__, register_fake_class="fake_class_registry", triton_op="triton", wrap_triton="triton",
    capture_triton="triton")
