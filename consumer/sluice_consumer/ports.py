"""Real adapters made from a configuration: the checkpoint table, the stream's catalog, addresses."""

from __future__ import annotations

from sluice_checkpoints.dynamodb import DynamoTable, Endpoint, client
from sluice_checkpoints.kinesis_catalog import BotoStreamCatalog
from sluice_checkpoints.provision import DynamoTargets
from sluice_checkpoints.retrying import Patience
from sluice_checkpoints.source_dynamodb import DynamoSources
from sluice_checkpoints.store import CheckpointStore
from sluice_consumer.config import Config


def store(config: Config) -> CheckpointStore:
    """The consumer's table, with the patience of a batch."""
    endpoint = Endpoint(config.stream.region, config.stream.dynamodb_endpoint)
    return CheckpointStore(DynamoTable(config.checkpoints.table, client(endpoint)))


def beating_store(config: Config) -> CheckpointStore:
    """The same table for heartbeats: an answer within a sixth of the lease, or none."""
    sixth = config.lease_duration_seconds / 6
    endpoint = Endpoint(config.stream.region, config.stream.dynamodb_endpoint, timeout=sixth / 2)
    return CheckpointStore(DynamoTable(config.checkpoints.table, client(endpoint, connections=1), Patience(limit=sixth, cap=sixth / 4)))


def targets(config: Config) -> DynamoTargets:
    """Where the consumer's table is made."""
    return DynamoTargets(client(Endpoint(config.stream.region, config.stream.dynamodb_endpoint)))


def sources(config: Config) -> DynamoSources:
    """Where the table that was migrated is read."""
    return DynamoSources(client(Endpoint(config.stream.region, config.stream.dynamodb_endpoint), connections=1))


def catalog(config: Config) -> BotoStreamCatalog:
    """The stream."""
    return BotoStreamCatalog(config.stream.name, config.stream.region, config.stream.kinesis_endpoint)
