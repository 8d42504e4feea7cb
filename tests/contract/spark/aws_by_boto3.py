"""The program `aws`, as far as docs/trial.md needs it: `aws SERVICE OPERATION --option VALUE …` and `aws SERVICE wait WAITER …`, by boto3.

Its operations and options are those of botocore's models, as the real program's are. Each call is noted in the file that AWS_CALLS names.
"""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from botocore import xform_name

WAITED = {"stream-exists": "DescribeStream"}


def main(service: str, command: str, *options: str) -> None:
    words = list(options)
    client: Any = boto3.client(service)  # type: ignore[call-overload]  # a service by its name
    if command == "wait":
        waiter = words.pop(0)
        ready = client.get_waiter(waiter.replace("-", "_"))
        call, operation = partial(ready.wait, WaiterConfig={"Delay": 1}), WAITED[waiter]
    else:
        name = command.replace("-", "_")
        call, operation = getattr(client, name), client.meta.method_to_api_mapping[name]
    members = client.meta.service_model.operation_model(operation).input_shape.members
    named = {f"--{xform_name(name, '-')}": (name, shape.type_name) for name, shape in members.items()}
    given: dict[str, Any] = {}
    rest = iter(words)
    for option in rest:
        name, kind = named[option.replace("--no-", "--")]
        given[name] = option in named if kind == "boolean" else int(next(rest)) if kind == "integer" else next(rest)
    with Path(os.environ["AWS_CALLS"]).open("a") as calls:
        calls.write(f"{service}:{operation}\n")
    call(**given)


if __name__ == "__main__":
    main(*sys.argv[1:])
