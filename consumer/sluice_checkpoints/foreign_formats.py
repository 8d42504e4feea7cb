"""The formats that can be written, by name."""

from __future__ import annotations

from sluice_checkpoints.foreign_kcl import KCL
from sluice_checkpoints.foreign_kinsumer import KINSUMER
from sluice_checkpoints.foreign_nifi import NIFI
from sluice_checkpoints.foreign_vmware_go_kcl import VMWARE_GO_KCL

WRITERS = {writer.name: writer for writer in (KCL, NIFI, VMWARE_GO_KCL, KINSUMER)}
