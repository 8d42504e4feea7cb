"""Each block of code on a How-to page has a place: a test that runs it, a test that runs its like, or the reason why none can.

Manifests and documents (`yaml`, `json`) are read by tests/test_code_blocks.py. docs/start/local.md has a test of its own, for the whole page.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import page_blocks
import pytest
from page_blocks import ROOT

INDEX, RUNBOOKS = "docs/how-to/index.md", "docs/runbooks.md"
CODE = {"python", "sh", "console", "dockerfile", ""}
LINK = re.compile(r"\]\(([^)#]+\.md)")


@dataclass(frozen=True)
class Run:
    """By this test, which reads the page."""

    test: str


@dataclass(frozen=True)
class Like:
    """Not as typed, for this reason; the test does the same."""

    why: str
    test: str


@dataclass(frozen=True)
class NotRun:
    why: str


Place = Run | Like | NotRun
PLUGIN = "tests/consumer/testing/test_plugin.py::test_the_documented_tests_pass_and_a_careless_pipeline_fails"
CODE_OF_KCL = "tests/contract/kcl/test_migrate_code.py"
EKS, PAGES = "tests/cluster/test_start_eks.py", "tests/contract/spark/test_pages.py"
ITS_OWN = f"{PAGES}::test_a_process_of_its_own_rejects_rows_and_redrives_them"
CLI, KUBECTL = "tests/checkpoints/cli", "tests/operator/helm/test_kubectl_of_pages.py"
PLACES: dict[str, dict[str, Place]] = {  # by page, and by the beginning of a block
    "docs/how-to/decode.md": {
        "# orders_avro.py": Run("tests/contract/kcl/test_decode.py::test_records_of_a_schema_registry_are_read_as_the_newest_schema")
    },
    "docs/migrate/code.md": {
        "# orders_of_java.py": Run(f"{CODE_OF_KCL}::test_the_processor_in_java_and_its_pipeline_store_the_same_orders"),
        "# customers_kcl.py": Run(f"{CODE_OF_KCL}::test_the_processor_of_multilang_and_its_pipeline_store_the_same_customers"),
        "# customers.py": Run(f"{CODE_OF_KCL}::test_the_processor_of_multilang_and_its_pipeline_store_the_same_customers"),
    },
    "docs/testing.md": {
        "# my_pipeline.py": Run(PLUGIN),
        "# test_my_pipeline.py": Run(PLUGIN),
        "not each record once after 2 of 3 kills and 1": Like("what it says of a file of another name", PLUGIN),
        "not each record once after 3 of 9 kills and": Like(
            "the line that it ends with",
            "tests/contract/sinks/test_replays.py::test_a_key_made_of_the_batch_doubles_what_a_shortened_batch_brings_again",
        ),
        "pip install": Like(
            "the first line is that of docs/start/local.md; lines are typed into the second",
            "tests/contract/dev/test_dev.py::test_lines_reach_the_code_a_saved_file_runs_anew_and_an_interrupt_ends_all",
        ),
        "sluice dev --manifest": Like(
            "Spark would fetch Iceberg; what becomes of a manifest is tried there without Spark",
            "tests/consumer/dev/test_manifest.py::test_dev_runs_what_the_manifest_deploys",
        ),
    },
    "docs/sinks.md": {
        "from sluice_consumer.sinks import iceberg": Run(
            "tests/contract/sinks/test_iceberg_table.py::test_the_process_of_the_page_leaves_out_what_it_says"
        ),
        "from sluice_consumer.sinks import json_rows": Run(
            "tests/contract/sinks/test_parquet_files.py::test_the_process_of_the_page_decodes_and_stores"
        ),
        "<path>/<consumer>": Like(
            "names of files, with placeholders", "tests/contract/sinks/test_parquet_files.py::test_what_a_killed_driver_left_does_not_count_and_goes"
        ),
        "import pyarrow.dataset": Run("tests/contract/sinks/test_parquet_files.py::test_the_reader_of_the_page_sees_what_counts"),
        "import psycopg": Run(
            "tests/contract/sinks/test_postgres.py::test_each_record_is_stored_once_though_a_task_was_killed_and_batches_come_again"
        ),
    },
    "docs/plain-pyspark.md": {
        "sluice run --config": Run(ITS_OWN),
        "sluice run --standby": Like(
            "`python -m sluice_consumer` is the same program",
            "tests/contract/spark/test_standby.py::test_a_driver_that_stands_by_continues_when_the_first_one_drains",
        ),
        "batch 12:": Like(
            "figures of one backfill",
            "tests/contract/spark/test_plain_pyspark.py::test_a_backfill_ends_with_code_0_while_records_keep_coming_and_serves_its_metrics",
        ),
        "python -m venv /tmp/env": NotRun("there is no YARN here; the page says so under Tried"),
        "from sluice_consumer import embedded": Run(f"{PAGES}::test_the_notebook_of_the_page_stores_each_record"),
    },
    "docs/structured-streaming.md": {
        "from pyspark.sql.functions": Run(f"{PAGES}::test_the_query_of_the_page_reads_the_stream"),
        "def write(batch": Run("tests/contract/spark/test_streaming_lost_directory.py::test_the_function_of_the_page_goes_on_in_a_new_directory"),
    },
    "docs/dead-letters.md": {
        "from sluice_consumer.sinks import json_rows": Run(ITS_OWN),
        "PLACE = [": Run("tests/contract/spark/test_folder_letters.py::test_a_record_of_several_rows_is_in_its_letter_or_in_the_sink"),
        "sluice dead-letters list": Run("tests/kubectl/cli/test_letters.py::test_the_commands_for_a_folder_are_those_of_their_page"),
        "sluice dead-letters redrive": Run(ITS_OWN),
    },
    "docs/start/eks.md": {
        "make version": Like("the registry and the version are others", "tests/cluster/test_release.py::test_helm_installs_from_the_registry_alone"),
        "REGISTRY=111122223333": Run("tests/lab/site/test_start_aws.py::test_ecr_gets_the_repositories_that_a_release_pushes"),
        "cd docs/start": Run("tests/lab/site/test_start_aws.py::test_a_call_has_the_parameters_that_the_service_wants"),
        "aws iam create-role --role-name orders-reader": Run("tests/lab/site/test_start_aws.py::test_each_role_has_the_policies_of_the_pages_table"),
        "for role in driver": Run("tests/lab/site/test_start_aws.py::test_each_role_has_the_policies_of_the_pages_table"),
        "helm install": Run(f"{EKS}::test_the_operator_is_installed_and_tested_by_two_commands"),
        "kubectl apply": Run(f"{EKS}::test_the_consumer_gets_ready_within_the_time_of_the_page_and_prints_rows"),
        "kubectl delete": Run(f"{EKS}::test_all_of_it_goes_but_the_table_and_the_crd"),
    },
    "docs/images.md": {
        "FROM registry.example": Like(
            "its package and its jar are placeholders",
            "tests/cluster/test_examples.py::test_the_image_of_an_example_is_built_on_the_consumers_and_holds_its_code",
        )
    },
    "docs/gitops.md": {
        "kubectl -n sluice-system": Run(f"{KUBECTL}::test_argo_cds_configmap_gets_the_health_check_and_keeps_what_it_has"),
    },
    "docs/migration.md": {
        "sluice migrate": Like("no account has its table", f"{CLI}/test_command_line.py::test_a_dry_run_shows_every_shard_with_its_reason"),
        "sluice diagnose": Like("a synopsis", f"{CLI}/test_diagnose_command.py::test_what_the_table_does_not_say_the_user_may"),
        "sluice export": Like(
            "no account has its table", "tests/checkpoints/export/test_export_command.py::test_a_dry_run_shows_every_shard_with_its_reason"
        ),
    },
    "docs/operations.md": {
        "helm install sluice-blue": Run(
            "tests/operator/cluster/test_operator_class.py::test_the_second_installation_of_the_page_has_a_class_of_its_own"
        ),
        "kubectl delete kc orders -n shop": Like(
            "the deletion is kubectl's; the command line is run with other names",
            "tests/contract/checkpoints/test_copies.py::test_a_table_is_handed_over_by_the_command_that_the_refusal_names",
        ),
    },
    "docs/how-to/configmap.md": {
        "kubectl create configmap orders-code": Like(
            "it is one command of kubectl's own; the ConfigMap comes from a manifest",
            "tests/cluster/test_resource.py::test_changed_code_works_from_the_next_driver_on",
        ),
    },
    "docs/how-to/restore.md": {
        "aws dynamodb restore-table-to-point-in-time": Like(
            "no emulator here restores a table; a copy is made row by row, as a restore makes it",
            "tests/contract/checkpoints/test_copies.py::test_an_adoption_says_how_many_batches_come_again",
        ),
        "aws dynamodb list-backups": NotRun("no emulator here keeps the backup of a deleted table; the commands are those of AWS's developer guide"),
        "aws dynamodb wait": NotRun("no emulator here restores a table"),
        "sluice adopt --table": Like(
            "a table of this page is in no account", "tests/contract/checkpoints/test_copies.py::test_a_copy_is_refused_until_it_is_adopted"
        ),
    },
    "docs/how-to/undo-a-deploy.md": {
        "kubectl get pod orders-driver-9": Like(
            "a configuration is had by this command; a suspension is tried where its rules are",
            "tests/cluster/test_flux.py::test_a_drain_outlives_reconciles_until_git_says_otherwise",
        ),
        "$ sluice show": Run("tests/kubectl/test_screens.py::test_a_screen_of_a_page_is_what_the_program_prints"),
        "python -m sluice_consumer rollback-sink": Like(
            "the batch is another",
            "tests/cluster/test_positions.py::test_exactly_the_records_of_the_bad_version_come_again_and_the_sink_is_right",
        ),
        "sluice reset": NotRun("the command is tried in tests of its own; a table of this page is in no account"),
    },
    "docs/how-to/read-again.md": {
        "kubectl apply -f orders-again.yaml": Like(
            "names and times are the test's own", "tests/cluster/test_until.py::test_it_delivers_exactly_its_range_each_record_once"
        ),
        "kubectl apply -f orders.yaml": Like(
            "the operator's rules move positions there, and a person sees it",
            "tests/kubectl/cli/test_moves.py::test_status_shows_what_became_of_the_last_move",
        ),
        "kubectl sluice drain orders": Like(
            "names and times are the test's own",
            "tests/checkpoints/positions/test_reset_command.py::test_without_an_id_one_is_made_that_begins_with_the_date",
        ),
        "sluice show --table": Like(
            "names are the test's own", "tests/checkpoints/positions/test_positions_file.py::test_the_command_moves_to_the_positions_of_a_file"
        ),
    },
    "examples/README.md": {
        "make venv": Like(
            "it is how all tests are run", "examples/upsert-postgresql/test_upsert_postgresql.py::test_every_change_of_an_account_is_counted_once"
        ),
    },
}

PROGRAMS = "tests/contract/checkpoints/test_migrate_pages.py"
TYPED = f"{KUBECTL}::test_kubectl_of_a_migration_does_what_its_page_says"
SLUICE = f"{PROGRAMS}::test_the_programs_of_a_page_lead_there_and_back"
MIXED = Like("kubectl's lines are typed there, the others by the programs' test; a condition needs the operator", TYPED)
_PAGE: dict[str, Place] = {
    "sluice diagnose": Run(SLUICE),
    "sluice migrate": Run(SLUICE),
    "kubectl apply": Run(TYPED),
    "kubectl wait --for=condition": MIXED,
    "kubectl patch": MIXED,
}
PLACES |= {f"docs/migrate/{name}.md": _PAGE | {"kubectl scale": Run(TYPED)} for name in ("kcl", "vmware-go-kcl", "kinsumer")}
PLACES["docs/migrate/nifi.md"] = _PAGE
PLACES["docs/migrate/awslabs.md"] = {
    "sluice run": Run("tests/contract/checks/test_check_program.py::test_the_check_of_the_page_for_the_awslabs_connector"),
    "kubectl apply": Run(TYPED),
    "kubectl wait --for=condition": Like("a condition needs the operator; `show` is that of the other pages", SLUICE),
    "kubectl patch": Run(TYPED),
}
PLACES["docs/kubectl.md"] = {
    "pip install": Run("tests/lab/site/test_start_local.py::test_the_program_of_a_person_is_installed_as_its_page_says"),
    "kubectl sluice dead-letters": Run("tests/kubectl/cli/test_letters.py::test_the_commands_of_the_page_are_those"),
    "$ kubectl sluice ": Run("tests/kubectl/test_screens.py::test_a_screen_of_a_page_is_what_the_program_prints"),
}
SCREEN = Run("tests/kubectl/test_screens.py::test_a_screen_of_a_page_is_what_the_program_prints")
PLACES[RUNBOOKS] = {
    "kubectl get kc": Like(
        "an overview; docs/kubectl.md has their screens", "tests/kubectl/test_screens.py::test_the_page_shows_a_screen_of_each_command"
    ),
    "$ kubectl get kc": SCREEN,
    "$ kubectl sluice ": SCREEN,
    "kubectl annotate kc": Like(
        "no record of the lab is lost so", "tests/operator/apply/test_manifests.py::test_an_accepted_loss_is_told_to_the_next_driver"
    ),
    "kubectl get pod": Run(f"{EKS}::test_a_drivers_configuration_can_be_had_for_a_check"),
    "26/11/24": Like(
        "the end of one log",
        "tests/contract/spark/test_last_words.py::test_a_driver_whose_task_raised_ends_with_the_users_own_exception_and_not_with_sparks",
    ),
}
MANY = {"$ kubectl sluice "}  # begins each screen


def pages() -> list[str]:
    """Those that the list of tasks leads to, the procedures of a migration, the page of a person's program, and the runbooks."""
    folder = (ROOT / INDEX).parent
    linked = {str((folder / link).resolve().relative_to(ROOT)) for link in LINK.findall((ROOT / INDEX).read_text())}
    procedures = {str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "migrate").glob("*.md")}
    return sorted(linked | procedures | {INDEX, "docs/kubectl.md", RUNBOOKS})


@pytest.mark.parametrize("page", pages())
def test_each_block_of_a_page_has_its_place(page: str) -> None:
    texts = [each.text.lstrip() for each in page_blocks.of(page) if each.language in CODE]
    places = PLACES.get(page, {})
    assert [text[:60] for text in texts if not any(text.startswith(begin) for begin in places)] == [], "say here which test runs it"
    found = {begin: sum(text.startswith(begin) for text in texts) for begin in places}
    assert {begin: min(count, 1) if begin in MANY else count for begin, count in found.items()} == dict.fromkeys(places, 1)


@pytest.mark.parametrize("page", PLACES)
def test_a_place_is_a_test_that_is_there(page: str) -> None:
    """One that runs a page's own text names the page, or all of its folder."""
    for place in (each for each in PLACES[page].values() if not isinstance(each, NotRun)):
        file, _, name = place.test.partition("::")
        code = (ROOT / file).read_text()
        assert name in {node.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef)}, place.test
        folder, _, own = page.rpartition("/")
        assert isinstance(place, Like) or own in code or f"{folder}/{{" in code, place.test


def test_pages_are_found() -> None:
    """Else the claims above would be of nothing."""
    assert set(PLACES) <= set(pages())
