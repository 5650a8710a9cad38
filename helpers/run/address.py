"""Where the book is on the web, read from one place: the remote ``origin`` of the checkout that builds it.

``BOOK_REPOSITORY`` names another address, or, set to nothing, none. Pages are at the usual place of the host, or where
``BOOK_SITE`` says. Without an address there are no buttons and no links that need one; no file of the repository holds any.
"""

import os
import re
import shutil
import subprocess

from helpers import places

#: The branch that is edited, and the one that publishing fills with copies to launch (:mod:`helpers.run.launch`).
BRANCH, LAUNCH = "main", "launch"
#: Hosts, and where they show the pages of their repositories.
PAGES = {"github.com": "github.io", "gitlab.com": "gitlab.io"}
_REMOTE = re.compile(
    r"(?:https?://(?:[^/@]+@)?|ssh://(?:[^/@]+@)|[\w.-]+@)([\w.-]+\.\w+)(?::\d+)?[:/](.+?)(?:\.git)?/*"
)


def repository() -> str | None:
    """``https://github.com/owner/name``, or None for a checkout of none, and for a remote that is no address on the web."""
    remote = os.environ.get("BOOK_REPOSITORY")
    # another repository may be around a folder that is none
    if remote is None and (places.ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "-C", str(places.ROOT), "remote", "get-url", "origin"]
        remote = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    match = _REMOTE.fullmatch((remote or "").strip())
    return f"https://{match[1]}/{match[2]}" if match else None


def site() -> str | None:
    """Address of the built book, without a slash at its end, or None when it is not known."""
    if named := os.environ.get("BOOK_SITE", "").strip():
        return named.rstrip("/")
    host, _, path = (repository() or "").removeprefix("https://").partition("/")
    owner, _, name = path.partition("/")
    if host not in PAGES or not name:
        return None
    home = f"{owner.lower()}.{PAGES[host]}"
    return f"https://{home}" if name.lower() == home else f"https://{home}/{name}"


def raw(path: str) -> str | None:
    """Address of a file in the branch of copies to launch, as downloads need it."""
    address = repository()
    return f"{address}/raw/{LAUNCH}/{path}" if address else None
