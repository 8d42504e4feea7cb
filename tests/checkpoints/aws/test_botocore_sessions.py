"""Clients of one process know a service once."""

from __future__ import annotations

import pytest

from sluice_checkpoints.aws.boto_clients import kept_client, new_session


@pytest.mark.usefixtures("credentials")
def test_clients_share_what_botocore_knows_of_a_service_and_nothing_else() -> None:
    """It is 9 MB, and the driver of a pool has a client of Kinesis for each consumer. Credentials and configuration stay those of each."""
    one, other = (kept_client("kinesis", region, "http://localhost:1") for region in ("eu-west-1", "us-east-1"))
    assert one.meta.service_model.metadata is other.meta.service_model.metadata
    assert (one.meta.region_name, other.meta.region_name) == ("eu-west-1", "us-east-1")
    first, second = new_session(), new_session()
    first.set_config_variable("region", "eu-west-1")
    assert second.get_config_variable("region") != "eu-west-1"
    assert first.get_component("credential_provider") is not second.get_component("credential_provider")
