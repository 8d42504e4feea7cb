"""Which test, or which sentence of docs/sinks.md, fills a cell of the matrix of sinks: a way to deliver by a way that a batch ends or changes."""

from __future__ import annotations

MATRIX = "tests/contract/sinks/test_matrix.py"
STREAM, SKIPS = "tests/contract/spark/test_streaming_deaths.py", "tests/consumer/streaming/test_sinks_that_skip.py"
NO_SEARCH = "A streaming query has no `onError`: a batch that fails ends the query, and comes again."
THEIRS = "If the owner of a streaming sink changes its files or rows, Spark's rules apply, not Sluice's."

EVENTS = {  # as the page's table names them: the test of the matrix that fills them
    "killed": "test_killed_before_and_after_its_writes",
    "poison": "test_poison_alone",
    "poison in two shards": "test_poison_in_two_shards",
    "rejected rows": "test_rejected_rows",
    "rejected, then repaired": "test_rejected_rows_of_a_process_that_raises_and_is_repaired",
    "redrive": "test_redriven_letters",
    "drained in a search": "test_a_drain_in_a_search",
    "replayed after hours": "test_a_replay_after_hours_of_the_owners_maintenance",
    "owner's rollback": "test_the_owner_takes_back_what_an_open_batch_stored",
    "second writer": "test_a_second_writer",
    "empty batch": "test_an_empty_batch",
    "column added": "test_the_owner_adds_a_column",
    "another shape": "test_documents_of_another_shape",
}
OF_STREAMS = {
    "killed": f"{STREAM}::test_a_file_sink_holds_every_record_once_after_deaths",
    "poison": NO_SEARCH,
    "poison in two shards": NO_SEARCH,
    "rejected rows": NO_SEARCH,
    "rejected, then repaired": NO_SEARCH,
    "redrive": NO_SEARCH,
    "drained in a search": NO_SEARCH,
    "replayed after hours": f"{SKIPS}::test_a_death_at_any_step_is_survived_by_a_sink_that_skips_what_it_knows",
    "owner's rollback": THEIRS,
    "second writer": "tests/contract/spark/test_streaming.py::test_a_second_source_on_the_table_and_a_second_use_of_the_source_are_refused",
    "empty batch": "tests/contract/spark/test_streaming.py::test_state_is_right_and_batches_without_data_disturb_no_number",
    "column added": THEIRS,
    "another shape": "tests/contract/spark/test_streaming.py::test_an_error_of_the_function_ends_the_query_and_the_batch_comes_again",
}
CELLS = {
    **{(way, event): f"{MATRIX}::{test}" for way in ("iceberg", "delta", "parquet", "foreach") for event, test in EVENTS.items()},
    **{(way, event): filled for way in ("streaming files", "foreachBatch") for event, filled in OF_STREAMS.items()},
}
