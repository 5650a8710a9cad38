"""Where the book is on the web, read from one place: the remote ``origin`` of the checkout that builds it.

``BOOK_REPOSITORY`` names another address, or, set to nothing, none. Pages are at the usual place of the host, or where
``BOOK_SITE`` says. Without an address there are no buttons and no links that need one; no file of the repository holds any.
"""

import os
import re
import subprocess

import yaml

from helpers import places

BRANCH, LAUNCH = "main", "launch"
"""The branch that is edited, and the one that publishing fills with copies to launch (:mod:`helpers.run.launch`)."""
PAGES = {"github.com": "github.io", "gitlab.com": "gitlab.io"}
"""Hosts, and where they show the pages of their repositories."""
BINDER, COLAB = "https://mybinder.org", "https://colab.research.google.com"
_REMOTE = re.compile(
    r"(?:https?://(?:[^/@]+@)?|ssh://(?:[^/@]+@)|[\w.-]+@)([\w.-]+\.\w+)(?::\d+)?[:/](.+?)(?:\.git)?/*"
)


def repository() -> str | None:
    """``https://github.com/owner/name``, or None for a checkout of none, and for a remote that is no address on the web."""
    named = os.environ.get("BOOK_REPOSITORY")
    found = _REMOTE.fullmatch(_origin() if named is None else named.strip())
    return f"https://{found[1]}/{found[2]}" if found else None


def _origin() -> str:
    if not (places.ROOT / ".git").exists():  # another repository may be around a folder that is none
        return ""
    command = ["git", "-C", str(places.ROOT), "remote", "get-url", "origin"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:  # no git on this machine
        return ""


def site() -> str | None:
    """Address of the built book, without a slash at its end, or None when it is not known."""
    named = os.environ.get("BOOK_SITE", "").strip()
    if named:
        return named.rstrip("/")
    host, *path = (repository() or "").removeprefix("https://").split("/")
    if host not in PAGES or len(path) < 2:
        return None
    owner, *name = path
    home = f"{owner.lower()}.{PAGES[host]}"
    return f"https://{home}" if [home] == [part.lower() for part in name] else f"https://{home}/{'/'.join(name)}"


def raw(path: str, branch: str = LAUNCH) -> str | None:
    """Address of a file in a branch of the repository, as downloads need it."""
    found = repository()
    return f"{found}/raw/{branch}/{path}" if found else None


def releases() -> str | None:
    """Where releases are listed, and below ``latest/download`` the files of the newest, on hosts that are known to."""
    found = repository()
    return f"{found}/releases" if found and found.startswith("https://github.com/") else None


def configured(config: str) -> str:
    """The text of ``_config.yml`` with what depends on the address: each page's own address, and buttons to launch and edit pages and to see the repository."""
    values, home, found = yaml.safe_load(config), site(), repository()
    if home:
        pages = {"html_baseurl": f"{home}/", "ogp_site_url": f"{home}/", "ogp_image": f"{home}/_static/cover.png"}
        values["sphinx"]["config"] |= pages
    if found:
        values["repository"] = {"url": found, "path_to_book": "", "branch": BRANCH}
        values["launch_buttons"] = {"notebook_interface": "jupyterlab", "binderhub_url": BINDER}
        if "/github.com/" in found:
            values["launch_buttons"]["colab_url"] = COLAB
        values["html"] |= {"use_repository_button": True, "use_edit_page_button": True}
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True)


def in_launch(url: str) -> str:
    """The address of a button, led to the branch of copies."""
    return re.sub(rf"(?<=/blob/){BRANCH}(?=/)|(?<=/){BRANCH}(?=\?)", LAUNCH, url)
