"""`python -m sluice_lab.site.build`: fetches the scripts that the site's pages need, and prints their folder (`make site`)."""

from sluice_lab.machine import downloads

if __name__ == "__main__":
    print(downloads.site_scripts())
