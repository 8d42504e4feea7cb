"""The formats that can be written, by name."""

from __future__ import annotations

from sluice_checkpoints.formats.kcl_writer import KCL
from sluice_checkpoints.formats.kinsumer_writer import KINSUMER
from sluice_checkpoints.formats.nifi_writer import NIFI
from sluice_checkpoints.formats.vmware_go_kcl_writer import VMWARE_GO_KCL

WRITERS = {writer.name: writer for writer in (KCL, NIFI, VMWARE_GO_KCL, KINSUMER)}
