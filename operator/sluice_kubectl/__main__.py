"""`python -m sluice_kubectl` is `sluice`."""

from sluice_kubectl.program import main

if __name__ == "__main__":
    main()
