"""Settings of the watching of frames: no frame is watched."""

import pytest

from flambeau._C._dynamo import eval_frame


def test_only_no_callback_can_be_set():
    assert eval_frame.set_eval_frame(None) is None
    assert eval_frame.get_eval_frame_callback() is None
    with pytest.raises(NotImplementedError, match="set_eval_frame: flambeau does not watch frames"):
        eval_frame.set_eval_frame(lambda frame: None)


def test_settings_of_kept_code_are_remembered():
    before = eval_frame._lru_cache
    eval_frame._set_lru_cache(False)
    assert eval_frame._lru_cache is False
    eval_frame._set_lru_cache(before)
    assert eval_frame.reset_code((lambda: 0).__code__) is None
