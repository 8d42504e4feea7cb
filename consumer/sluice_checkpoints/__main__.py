"""`python -m sluice_checkpoints`."""

from sluice_checkpoints.cli.main import main

main()
