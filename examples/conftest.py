"""For the tests of the examples: emulated AWS, started once, and the example whose folder the test is in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_lab.examples.example import Example
from sluice_lab.examples.surroundings import ExampleSurroundings, surroundings

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them start a local Spark, on the line that has the table formats."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.lake)


@pytest.fixture(scope="session")
def around() -> Iterator[ExampleSurroundings]:
    """Kinesis, DynamoDB, S3, and Spark as the image has it."""
    with surroundings() as found:
        yield found


@pytest.fixture
def example(request: pytest.FixtureRequest, around: ExampleSurroundings, tmp_path: Path) -> Example:
    """This example."""
    return Example(request.path.parent, around, tmp_path)
