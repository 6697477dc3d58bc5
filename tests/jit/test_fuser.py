"""Settings of what would fuse: remembered."""
import pytest

import flambeau as torch


@pytest.mark.parametrize(("name", "cpu", "texpr"), [
    ("fuser0", True, False), ("fuser1", True, True), ("fuser2", False, False),
    ("fuser3", True, True)])
def test_settings_last_for_the_block(name, cpu, texpr):
    before = torch._C._jit_can_fuse_on_cpu(), torch._C._jit_texpr_fuser_enabled()
    with torch.jit.fuser(name):
        assert torch._C._jit_can_fuse_on_cpu() == cpu
        assert torch._C._jit_texpr_fuser_enabled() == texpr
    assert (torch._C._jit_can_fuse_on_cpu(), torch._C._jit_texpr_fuser_enabled()) == before


def test_strategies_and_execution():
    strategy = [("STATIC", 2), ("DYNAMIC", 10)]
    before = torch.jit.set_fusion_strategy(strategy)
    assert torch.jit.set_fusion_strategy(before) == strategy
    with torch.jit.optimized_execution(False):
        assert not torch._C._get_graph_executor_optimize()
    assert torch._C._get_graph_executor_optimize()
    with pytest.raises(Exception, match=r"unrecognized fuser option \(name: fuser9\)"), \
            torch.jit.fuser("fuser9"):
        pass
