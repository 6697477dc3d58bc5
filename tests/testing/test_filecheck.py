"""Text is searched for what it must hold."""

import pytest

from flambeau.testing import FileCheck


def test_filecheck():
    text = "alpha beta\ngamma\nbeta beta"
    FileCheck().check("alpha").check_same("beta").check_next("gamma").check_count("beta", 2).run(
        text)
    FileCheck().check_not("delta").check("gamma").check_not("alpha").run(text)
    FileCheck().check_dag("gamma").check_dag("alpha").check_regex(r"be\w+ be").run(text)
    for bad in (FileCheck().check("delta"), FileCheck().check_not("beta").check("gamma"),
                FileCheck().check("alpha").check_next("beta"),
                FileCheck().check("gamma").check("alpha"),
                FileCheck().check_count("beta", 2, exactly=True)):
        with pytest.raises(RuntimeError):
            bad.run(text)
