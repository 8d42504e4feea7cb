"""The picture on README's first screen is the generator's, and its arrows can be followed."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from sluice_lab import places
from sluice_lab.pictures.overview import ARROWS, BOXES, HEIGHT, STORY, WIDTH, Arrow, drawn

Area = tuple[int, int, int, int]
LETTER, SMALL, BOLD = 7, 6.4, 8.8  # pixels that a letter needs: more than it does, in a line of 12 pixels, and in a bold one of 14


def pieces(arrow: Arrow) -> list[Area]:
    """The straight parts of an arrow as areas: left, top, right, bottom."""
    return [(min(x, p), min(y, q), max(x, p), max(y, q)) for (x, y), (p, q) in pairwise(arrow.corners)]


def words(arrow: Arrow) -> list[Area]:
    text, x, y = arrow.label
    return [(x - 19 * bool(arrow.step), y - 12, x + LETTER * len(text), y + 3)] if text else []


def meet(one: Area, other: Area) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]


INSIDES = [(box.x + 1, box.y + 1, box.x + box.width - 1, box.y + box.height - 1) for box in BOXES]


def test_the_stored_picture_is_the_generators() -> None:
    """`make generate` writes it."""
    assert (places.REPO / "docs" / "start" / "picture.svg").read_text(encoding="utf-8") == drawn()


def test_no_arrow_crosses_another_one() -> None:
    assert [(one, other) for one, other in combinations(ARROWS, 2) for a in pieces(one) for b in pieces(other) if meet(a, b)] == []


@pytest.mark.parametrize("arrow", ARROWS, ids=lambda arrow: f"{arrow.corners[0]}{arrow.label[0]}")
def test_an_arrow_goes_from_box_to_box_and_through_none(arrow: Arrow) -> None:
    assert [each for each in INSIDES for piece in pieces(arrow) if meet(each, piece)] == []
    ends = [(x - 1, y - 1, x + 1, y + 1) for x, y in (arrow.corners[0], arrow.corners[-1])]
    assert [sum(meet(each, end) for each in INSIDES) for end in ends] == [1, 1]


def test_no_label_lies_over_a_box_an_arrow_or_another_label() -> None:
    """With room for fonts that are wider than ours."""
    labels = [area for arrow in ARROWS for area in words(arrow)]
    others = [*INSIDES, *(piece for arrow in ARROWS for piece in pieces(arrow))]
    assert [(one, other) for one in labels for other in others if meet(one, other)] == []
    assert [pair for pair in combinations(labels, 2) if meet(*pair)] == []


def test_words_fit_into_their_box() -> None:
    assert [box.title for box in BOXES if max(BOLD * len(box.title), SMALL * len(box.what)) > box.width] == []


def test_each_step_of_a_batch_has_an_arrow_and_a_sentence() -> None:
    assert sorted(arrow.step for arrow in ARROWS if arrow.step) == [number for number, *_ in STORY] == [1, 2, 3, 4]
    (commit,) = (arrow for arrow in ARROWS if arrow.step == 4)
    driver, table = (next(box for box in BOXES if box.title == title) for title in ("driver", "checkpoint table"))
    assert commit.corners[0] == (driver.x + driver.width, driver.y + driver.height // 2)
    assert commit.corners[-1][0] == table.x
    assert all(x + 13 + LETTER * len(text) < WIDTH and y < HEIGHT for _, x, y, text in STORY)
