"""The user's function, found by its name before there is a table, a lease or Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_checkpoints.errors import Refused
from sluice_consumer.spark.entrypoint import load


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "orders_of_a_user", raising=False)

    def write(text: str) -> None:
        (tmp_path / "orders_of_a_user.py").write_text(text)

    return write


def test_the_function_is_found(module: Callable[[str], None]) -> None:
    module("def process(batch, info): return 7")
    assert load("orders_of_a_user:process")(None, None) == 7  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "module orders_of_a_user has no process"),
        ("process = 7", "orders_of_a_user:process is not a function"),
        ("import no_such_package", "there is no module no_such_package; is it in the image, or"),
        ("from json import no_such_name", "cannot be imported: ImportError: .*no_such_name"),
        ("def process(batch", "cannot be imported: SyntaxError"),
    ],
)
def test_a_function_that_cannot_be_had_is_refused(module: Callable[[str], None], text: str, why: str) -> None:
    module(text)
    with pytest.raises(Refused, match=rf"pipeline\.entrypoint: .*{why}"):
        load("orders_of_a_user:process")


def test_an_error_of_the_module_itself_is_passed_on(module: Callable[[str], None]) -> None:
    """It may go away by itself, as a service that the module asks for; an attribute missing inside is not the function missing."""
    module("import json\njson.no_such_name\n")
    with pytest.raises(AttributeError, match="no_such_name"):
        load("orders_of_a_user:process")
