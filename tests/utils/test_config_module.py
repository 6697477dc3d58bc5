"""Modules of settings: defaults, the environment, aliases, and other values for a block."""
import importlib.util
import pickle
import sys
import unittest

import pytest

from flambeau.utils import _config_module

SOURCE = '''
import sys
from flambeau.utils._config_module import Config, install_config_module
a_bool = True
a_number = 1
a_word = "a"
a_list = [1]
nothing = None
maybe: bool = None
same: bool = Config(alias="settings_for_a_test.a_bool")
usual = Config(default=True, env_name_default="A_TEST_DEFAULT")
forced = Config(default=True, env_name_force="A_TEST_FORCE")
word = Config(default="q", env_name_default=["A_TEST_X", "A_TEST_Y"])
old = Config(default=3, deprecated=True, deprecation_message="use another")
_private = 5
# @compile_ignored: says nothing of what is compiled
ignored = Config(default=2)
class inner:
    a_bool = True
    deep = [1]
_save_config_ignore = ["a_list"]
_cache_config_ignore_prefix = ["a_word"]
install_config_module(sys.modules[__name__])
'''


@pytest.fixture
def settings(tmp_path, monkeypatch):
    path = tmp_path / "settings_for_a_test.py"
    path.write_text(SOURCE)
    for name, value in (("DEFAULT", "0"), ("FORCE", "0"), ("Y", "hello")):
        monkeypatch.setenv(f"A_TEST_{name}", value)
    spec = importlib.util.spec_from_file_location("settings_for_a_test", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "settings_for_a_test", module)
    spec.loader.exec_module(module)
    return module


def test_values(settings):
    assert (settings.a_bool, settings.a_number, settings.same, settings.inner.deep) == (
        True, 1, True, [1])
    assert (settings.usual, settings.forced, settings.word) == (False, False, "hello")
    settings.forced = settings.usual = True
    assert (settings.usual, settings.forced) == (True, False)
    settings.same = False
    assert settings.a_bool is False
    settings.inner.a_bool = False
    assert settings.inner.a_bool is False
    assert settings.get_type("maybe") is bool and settings.get_type("a_number") is int
    with pytest.warns(FutureWarning, match="old is deprecated and use another"):
        assert settings.old == 3


@pytest.mark.parametrize("use", [
    lambda s: s.nope, lambda s: setattr(s, "nope", 1), lambda s: setattr(s, "inner", 1),
    lambda s: s.patch(nope=1).__enter__()])
def test_what_is_no_setting(settings, use):
    with pytest.raises(AttributeError, match="does not exist"):
        use(settings)


def test_other_values_for_a_block(settings):
    before = settings.get_hash()
    with settings.patch(a_number=8):
        assert settings.a_number == 8 and settings.get_hash() != before
    assert settings.a_number == 1 and settings.get_hash() == before
    with settings.patch({"a_number": 3, "inner.a_bool": False}):
        assert (settings.a_number, settings.inner.a_bool) == (3, False)
    with settings.patch("ignored", 9):
        assert settings.ignored == 9 and settings.get_hash() == before
    assert settings.patch(a_number=11)(lambda: settings.a_number)() == 11

    @settings.patch(a_number=12)
    class Case(unittest.TestCase):
        def test(self):
            self.assertEqual(settings.a_number, 12)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert result.wasSuccessful() and result.testsRun == 1 and settings.a_number == 1
    change = settings._make_closure_patcher(a_number=99)
    revert = change()
    assert settings.a_number == 99
    revert()
    assert settings.a_number == 1


def test_what_is_saved(settings):
    saved = pickle.loads(settings.save_config())
    assert "a_list" not in saved and "same" not in saved and saved["inner.deep"] == [1]
    portable = settings.save_config_portable()
    assert not {"_private", "a_word"} & portable.keys() and "a_list" in portable
    assert "_private" in settings.save_config_portable(ignore_private_configs=False)
    settings.a_number = 7
    assert "settings_for_a_test.a_number = 7" in settings.codegen_config().splitlines()
    assert "a_word" not in settings.codegen_config()
    settings.load_config({"a_number": 4})
    assert settings.a_number == 4
    settings.load_config(pickle.dumps(saved))
    assert settings.a_number == 1
    with pytest.warns(FutureWarning, match="has been deprecated"):
        assert settings.to_dict() == settings.get_config_copy()
    settings.a_list.append(2)
    assert settings.a_list == [1, 2] and not settings._is_default("a_list")
    del settings.a_number
    assert not hasattr(settings, "a_number")


def test_wrong_declarations(monkeypatch):
    config = _config_module.Config
    with pytest.raises(AssertionError, match="if alias is set"):
        config(alias="a.b", default=3)
    with pytest.raises(AssertionError, match="val is not a list"):
        config(default="a", env_name_default=3)
    monkeypatch.setenv("A_TEST_THREE", "1")
    assert _config_module.get_tristate_env("A_TEST_THREE") is True
    assert _config_module.get_tristate_env("A_TEST_NOPE", "x") == "x"
