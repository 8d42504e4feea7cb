"""What workers print that Spark has hung up on. With PySpark's own daemon: tests/contract/spark/test_last_words.py."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace
from zipfile import ZipFile

import pytest

from sluice_consumer.config import CheckpointsConfig, Config, PipelineConfig, StreamConfig
from sluice_consumer.spark import conf, python_workers


@pytest.mark.parametrize(("error", "said"), [(BrokenPipeError(32, "Broken pipe"), False), (ConnectionResetError(), False), (ValueError("bad"), True)])
def test_a_worker_says_what_it_raised_but_not_that_spark_has_hung_up(error: Exception, said: bool, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: FBT001
    try:
        raise error  # noqa: TRY301 - it is handled where a worker's is
    except Exception:  # noqa: BLE001 - as PySpark's daemon does
        python_workers.print_exc()
    assert ("Traceback" in capsys.readouterr().err) == said


@pytest.mark.parametrize(("program", "level", "folded"), [("pyspark.daemon", "", True), ("pyspark.daemon", "debug", False), ("pytest", "", False)])
def test_only_a_worker_of_pysparks_daemon_is_changed_and_not_for_whoever_debugs(
    program: str,
    level: str,
    folded: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    main = SimpleNamespace(__spec__=SimpleNamespace(name=program), traceback="Python's")
    monkeypatch.setitem(sys.modules, "__main__", main)  # type: ignore[arg-type]
    monkeypatch.setenv("SLUICE_LOG_LEVEL", level)
    python_workers.fold_hang_ups.cache_clear()
    python_workers.fold_hang_ups()
    assert (main.traceback != "Python's") == folded
    python_workers.fold_hang_ups.cache_clear()


def test_the_worker_that_lists_data_sources_is_changed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """It imports each module that Spark would take for a data source by its name, and nothing else of ours."""
    main = SimpleNamespace(__spec__=SimpleNamespace(name="pyspark.daemon"), traceback="Python's")
    monkeypatch.setitem(sys.modules, "__main__", main)  # type: ignore[arg-type]
    monkeypatch.setenv("SLUICE_LOG_LEVEL", "")
    python_workers.fold_hang_ups.cache_clear()
    for name in [found.name for found in iter_modules() if found.name.startswith("pyspark_")]:
        monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.import_module(name)
    assert main.traceback != "Python's"
    python_workers.fold_hang_ups.cache_clear()


def test_spark_runs_it_unless_the_user_names_another_daemon() -> None:
    """Spark's setting is the name of a module."""
    config = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"))
    key = "spark.python.daemon.module"
    assert conf.settings(config, None)[key] == python_workers.__name__
    theirs = Config(StreamConfig("s", "r"), CheckpointsConfig("t"), PipelineConfig("m:f"), spark_conf={key: "theirs"})
    assert conf.settings(theirs, None)[key] == "theirs"


def test_a_daemon_that_workers_are_forked_from_starts_no_thread_and_imports_no_library_of_its_own() -> None:
    """PySpark asks that of it: pandas and pyarrow start threads. Its own daemon has numpy on some lines."""
    look = "import sys, threading; from pyspark import daemon; {}"
    look += "print(threading.active_count(), [name for name in ('numpy', 'pandas', 'pyarrow', 'boto3') if name in sys.modules])"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "consumer")}

    def said(first: str) -> str:
        return subprocess.run([sys.executable, "-c", look.format(first)], env=environment, check=True, capture_output=True, text=True).stdout

    assert said("import sluice_consumer.spark.python_workers; ") == said("")
    assert said("").startswith("1 ")


def test_an_archive_on_the_path_is_not_read_again_when_python_forgets_what_it_knows_of_it(tmp_path: Path) -> None:
    """Spark 4.1 asks for that in each task. What is in the archive can still be imported, and so can what is added to the path."""
    with ZipFile(tmp_path / "somebodys.zip", "w") as archive:
        for name in ("early", "late"):
            archive.writestr(f"{name}.py", "")
    look = (
        "import importlib, sys; from sluice_consumer.spark import python_workers; opened = []\n"
        f"sys.path.insert(0, {str(tmp_path / 'somebodys.zip')!r}); import early\n"
        "sys.addaudithook(lambda event, args: opened.append(args[0]) if event == 'open' and 'somebodys' in str(args[0]) else None)\n"
        "{}; importlib.invalidate_caches(); print(len(opened)); import late"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "consumer")}

    def opened(first: str) -> int:
        done = subprocess.run([sys.executable, "-c", look.format(first)], env=environment, check=True, capture_output=True, text=True)
        return int(done.stdout)

    assert opened("pass") > 0
    assert opened("python_workers.forget_archives()") == 0


def test_each_worker_sends_what_it_raised_in_our_form_whoever_imports_its_module() -> None:
    """From 4.2 on that is the worker, after the fork. One that runs only the user's code calls nothing of ours."""
    look = "from pyspark import daemon; from sluice_consumer.spark import python_workers; daemon.manager = lambda: None; python_workers.main(); "
    look += "import pyspark.worker; print(type(pyspark.worker.handle_worker_exception).__name__)"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "consumer")}
    done = subprocess.run([sys.executable, "-c", look, "pyspark.worker"], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout == "partial\n"
