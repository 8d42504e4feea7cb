"""What needs more packages than the rest: the checkpoint table (AWS), and the text format of Prometheus. Imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from sluice_kubectl.api.errors import CommandError, NothingThere
from sluice_kubectl.views.consumer import ConsumerView
from sluice_kubectl.views.letters import LettersPlace

Json = dict[str, Any]


def samples(scrape: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Name, labels and value of each sample.

    Raises:
        CommandError: a package is missing, or the text is not Prometheus'.
    """
    try:
        from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - may not be installed
    except ModuleNotFoundError as error:
        raise CommandError(f"the Python package {error.name} is not installed; next: install Sluice with its extra kubectl") from error
    try:
        for family in text_string_to_metric_families(scrape):
            for sample in family.samples:
                yield sample.name, dict(sample.labels), sample.value
    except ValueError as error:
        raise CommandError(f"the driver's metrics are not Prometheus' text: {error}") from error


def rows(view: ConsumerView, endpoint: str | None) -> Json:
    """The document of `sluice show` for the consumer's table, read with the person's AWS credentials.

    Raises:
        NothingThere: there is no such table, no access to it, or no AWS credentials.
        CommandError: DynamoDB gave no answer, or its client is not installed.
    """
    try:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - may not be installed

        from sluice_checkpoints.cli.table import own_table  # noqa: PLC0415 - as botocore
        from sluice_checkpoints.cli.table_document import document  # noqa: PLC0415 - as botocore
        from sluice_checkpoints.dynamodb.table import Endpoint, client  # noqa: PLC0415 - as botocore
        from sluice_checkpoints.errors import Refused, SluiceError  # noqa: PLC0415 - with them
    except ModuleNotFoundError as error:
        raise CommandError(f"the checkpoint table needs the Python package {error.name}; next: install Sluice with its extra checkpoints") from error
    where = f"checkpoint table {view.table} in {view.region}"
    try:
        return document(own_table(view.table, client(Endpoint(view.region, endpoint))))
    except (Refused, BotoCoreError, ClientError) as error:
        raise NothingThere(f"{where}: {error}; next: are these the right AWS credentials and account?") from error
    except SluiceError as error:
        raise CommandError(f"{where}: {error}; next: try again") from error


@dataclass(frozen=True, slots=True)
class LettersReader:
    """`dead-letters list` and `show` of the checkpoints' command line, over the folder of a resource."""

    place: LettersPlace
    endpoint: str | None

    def list(self, consumer_id: str | None, out: Console, *, as_json: bool) -> None:
        """Prints the dead letters of one consumer. Raises CommandError."""
        from sluice_checkpoints.cli import dead_letters  # noqa: PLC0415 - may not be installed

        self._printed(lambda folder, output: dead_letters.list_(folder, consumer_id, output), out, as_json=as_json)

    def show(self, name: str, out: Console, *, as_json: bool) -> None:
        """Prints one dead letter. Raises CommandError."""
        from sluice_checkpoints.cli import dead_letters  # noqa: PLC0415 - may not be installed

        self._printed(lambda folder, output: dead_letters.show(folder, name, output), out, as_json=as_json)

    def _printed(self, read: Callable[[Any, Any], None], out: Console, *, as_json: bool) -> None:
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - as above

        from sluice_checkpoints.cli.report import Output  # noqa: PLC0415 - as above
        from sluice_checkpoints.errors import Refused  # noqa: PLC0415 - as above
        from sluice_checkpoints.letters.folder import folder  # noqa: PLC0415 - as above

        output = Output(as_json=as_json)
        output.out = out
        try:
            read(folder(self.place.path, self.place.region, self.endpoint or self.place.endpoint), output)
        except (Refused, BotoCoreError) as error:
            raise NothingThere(f"{error}; next: are these the right AWS credentials and account?") from error
