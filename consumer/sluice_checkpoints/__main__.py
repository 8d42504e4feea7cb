"""`python -m sluice_checkpoints`."""

from sluice_checkpoints.cli import main

main()
