"""The documentation as a site: what of it is written from the code, and what the pages link outside of docs/.

The code knows its fields, columns, options and refusals better than a page that somebody types, and a site must show what a repository shows.
It has no content of its own, and pages are read where they are: docs/ is the source of the site, and of GitHub's view alike.
"""
