"""Records of many facts."""

import pytest

from flambeau._support.records import Record


class Shape(Record):
    corners: int = 0
    name: str = ""


class Solid(Shape):
    faces: int = 0
    name: str = "solid"

    def describe(self):
        return f"{self.name} of {self.faces} faces"


def test_facts_that_are_not_given_are_those_of_the_class():
    cube = Solid(faces=6, corners=8)
    assert (cube.corners, cube.faces, cube.name) == (8, 6, "solid")
    assert cube.describe() == "solid of 6 faces"
    assert Shape().name == ""


def test_what_is_given_is_told_apart():
    cube = Solid(faces=6)
    cube.name = "cube"
    cube.note = "no fact"
    assert cube.given() == {"faces": 6, "name": "cube"}


@pytest.mark.parametrize("name", ["faces", "describe"])
def test_other_facts_are_errors(name):
    with pytest.raises(TypeError, match=f"^Shape has no fact '{name}'$"):
        Shape(corners=3, **{name: 1})
