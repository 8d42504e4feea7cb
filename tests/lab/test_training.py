"""What makes the consumer image's archive of classes: the parts that run without the image."""

import importlib.util
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from sluice_consumer.spark import conf
from sluice_lab import places

TRAINING = places.REPO / "consumer" / "image" / "training"


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TRAINING))
    spec = importlib.util.spec_from_file_location("train", TRAINING / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delitem(sys.modules, "api")
    return module


def test_the_class_path_names_every_jar_in_order(train: ModuleType, tmp_path: Path) -> None:
    """In lines of 72 bytes at most, as Java reads them: a line that begins with a space goes on. Else the archive is of another class path."""
    names = sorted(f"{'long' * 9}-{number}.jar" for number in range(30))
    (tmp_path / "jars").mkdir()
    for name in reversed(names):
        (tmp_path / "jars" / name).touch()
    with zipfile.ZipFile(train.write_class_path(tmp_path)) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
    assert max(map(len, manifest.split("\r\n"))) <= 70
    (said,) = [line for line in manifest.replace("\r\n ", "").split("\r\n") if line.startswith("Class-Path: ")]
    assert said.removeprefix("Class-Path: ").split() == [f"jars/{name}" for name in names]


def test_driver_executor_and_image_mean_the_same_files(train: ModuleType) -> None:
    """Else nothing fails: everything only starts slowly."""
    dockerfile, entrypoint = ((places.REPO / name).read_text() for name in ("Dockerfile", "consumer/image/root/entrypoint"))
    spark, _, jar = conf.CLASS_PATH.rpartition("/")
    assert f"SPARK_HOME={spark} " in dockerfile
    assert jar == train.CLASS_PATH
    assert f'classpath="$SPARK_HOME/{jar}:' in entrypoint
    archive = conf.SHARED_CLASSES.split()[0]
    assert archive in entrypoint
    folder, _, name = archive.partition("=")[2].rpartition("/")
    assert f"COPY --from=trained /trained/{name} {folder}/\n" in dockerfile
