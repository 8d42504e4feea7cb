"""What is published: wheel, sdist, chart, manifests, images, SBOMs, checksums and notes, made from the last commit.

A user installs these files and no clone, so one program creates them, and the same commit gives the same bytes where that is possible.
It decides nothing about versions: pyproject.toml has the version, CHANGELOG.md the notes. It knows no credentials: docker's configuration has them.
"""
