"""SPDX 2.3 documents: what is in an image, and what the wheel needs. The library `spdx-tools` writes them, and refuses what is not valid."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from license_expression import ExpressionError, LicenseExpression, get_spdx_licensing
from spdx_tools.spdx.model.actor import Actor, ActorType
from spdx_tools.spdx.model.checksum import Checksum, ChecksumAlgorithm
from spdx_tools.spdx.model.document import CreationInfo, Document
from spdx_tools.spdx.model.package import ExternalPackageRef, ExternalPackageRefCategory, Package
from spdx_tools.spdx.model.relationship import Relationship, RelationshipType
from spdx_tools.spdx.model.spdx_no_assertion import SpdxNoAssertion
from spdx_tools.spdx.writer.json.json_writer import write_document_to_stream

from sluice_lab.release.components import Component

NAMESPACE = "https://sluice.dev/spdx"
DOCUMENT = "SPDXRef-DOCUMENT"
NONE_SAID = SpdxNoAssertion()


@dataclass(frozen=True)
class Subject:
    """What a document is about: an image of one processor, or the wheel. `optional`: its components come with extras only."""

    component: Component
    optional: bool = False


def write(subject: Subject, components: Iterable[Component], epoch: int, path: Path) -> None:
    """Write a document. Equal arguments give equal bytes.

    Raises:
        ValueError: the document is not valid SPDX.
    """
    listed = sorted(set(components))
    about = subject.component
    packages = [_package(0, about), *(_package(number, each) for number, each in enumerate(listed, 1))]
    relationships = [Relationship(DOCUMENT, RelationshipType.DESCRIBES, packages[0].spdx_id)]
    relationships += [_relationship(subject, packages[0].spdx_id, package.spdx_id) for package in packages[1:]]
    content = hashlib.sha256(repr((about, listed)).encode()).hexdigest()
    info = CreationInfo(
        spdx_version="SPDX-2.3",
        spdx_id=DOCUMENT,
        name=f"{about.name}-{about.version}",
        document_namespace=f"{NAMESPACE}/{about.name}-{about.version}-{content}",
        creators=[Actor(ActorType.TOOL, "sluice-release"), Actor(ActorType.ORGANIZATION, "Sluice")],
        created=datetime.fromtimestamp(epoch, UTC).replace(tzinfo=None),
    )
    text = io.StringIO()
    write_document_to_stream(Document(info, packages=packages, relationships=relationships), text, validate=True)
    path.write_text(text.getvalue() + "\n")


def _package(number: int, component: Component) -> Package:
    named = [ExternalPackageRef(ExternalPackageRefCategory.PACKAGE_MANAGER, "purl", component.purl)] if component.purl else []
    return Package(
        spdx_id=f"SPDXRef-{number}",
        name=component.name,
        version=component.version or None,
        download_location=NONE_SAID,
        files_analyzed=False,
        checksums=[Checksum(ChecksumAlgorithm.SHA256, component.sha256)] if component.sha256 else [],
        license_declared=_license(component.license),
        external_references=named,
    )


def _license(expression: str) -> LicenseExpression | SpdxNoAssertion:
    """An expression that SPDX knows; else no assertion."""
    if not expression:
        return NONE_SAID
    try:
        return get_spdx_licensing().parse(expression, validate=True)
    except ExpressionError:
        return NONE_SAID


def _relationship(subject: Subject, whole: str, part: str) -> Relationship:
    if subject.optional:
        return Relationship(part, RelationshipType.OPTIONAL_DEPENDENCY_OF, whole)
    return Relationship(whole, RelationshipType.CONTAINS, part)
