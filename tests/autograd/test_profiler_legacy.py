"""The profiler of before, under its old name."""
import warnings

import flambeau as torch


def test_it_records():
    from flambeau.autograd import profiler_legacy
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with profiler_legacy.profile() as prof:
            torch.ones(2).exp()
    assert any("exp" in event.name for event in prof.function_events)
    assert "exp" in prof.key_averages().table()
