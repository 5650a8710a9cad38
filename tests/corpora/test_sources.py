"""Finding, fetching and loading corpora: folders in order, wrong files, missing ones, sets of the hub."""

import hashlib
import re
import shutil
from pathlib import Path

import datasets
import pytest

from helpers import corpora, places
from helpers.corpora import fetching, sources
from helpers.corpora.fetching import FetchError


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path) -> Path:
    """An empty one, and no folder of real corpora."""
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BOOK_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def served(server):
    """Publish content under a name: its address."""

    def publish(name: str, content: bytes) -> str:
        (server.folder / name).write_bytes(content)
        return f"{server.url}/{name}"

    return publish


def fetched(monkeypatch, *downloads: dict) -> list[Path]:
    monkeypatch.setitem(fetching.RECIPES, "mine", downloads)
    return fetching.fetch("mine")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def in_cache(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "cache").rglob("*") if p.is_file())


def test_a_file_is_fetched_once(served, monkeypatch, tmp_path):
    download = {"url": served("f.bin", b"content"), "sha256": sha256(b"content"), "to": "x/f.bin"}
    (file,) = fetched(monkeypatch, download)
    assert file.read_bytes() == b"content" and in_cache(tmp_path) == ["f.bin"]
    (tmp_path / "www" / "f.bin").unlink()
    assert fetched(monkeypatch, download) == [file]


def test_what_is_not_kept(served, monkeypatch, tmp_path):
    url, nowhere = served("f.bin", b"something else"), "http://127.0.0.1:9/f.bin"
    with pytest.raises(FetchError, match=r"f\.bin could not be fetched .* does not match"):
        fetched(monkeypatch, {"url": url, "sha256": sha256(b"content"), "to": "x/f.bin"})
    for gone in (url + "x", nowhere):
        with pytest.raises(FetchError, match=rf"{gone} could not be fetched .*--data") as caught:
            fetched(monkeypatch, {"url": gone, "to": "x/f.bin"})
        assert "\n" not in str(caught.value)
    assert in_cache(tmp_path) == []


@pytest.mark.parametrize(("name", "kind"), [("a.zip", "zip"), ("a.tar.gz", "gztar")])
def test_only_the_wanted_members_are_kept(served, monkeypatch, tmp_path, name, kind):
    for member, content in {"train.tsv": "rows", "other": "no"}.items():
        places.write(tmp_path / "whole" / "top" / "RTE" / member, content)
    url = served(name, Path(shutil.make_archive(tmp_path / "packed", kind, tmp_path / "whole")).read_bytes())
    (file,) = fetched(monkeypatch, {"url": url, "members": {"RTE/train.tsv": "x/train.tsv"}})
    assert file.read_bytes() == b"rows" and in_cache(tmp_path) == ["train.tsv"]
    for wrong in (
        {"members": {"RTE/dev.tsv": "x/o"}},
        {"members": {"RTE/other": "x/o"}, "digests": {"RTE/other": "0"}},
    ):
        with pytest.raises(FetchError, match=r"o is not in it, or not the expected file"):
            fetched(monkeypatch, {"url": url, **wrong})
    assert in_cache(tmp_path) == ["train.tsv"]


def test_a_treebank_without_a_digest_is_counted(served, monkeypatch):
    url = served("t.conllu", b"# sent_id = 1\n# sent_id = 2\n")
    with pytest.raises(FetchError, match="another number of sentences"):
        fetched(monkeypatch, {"url": url, "to": "t.conllu", "sentences": 3})
    assert fetched(monkeypatch, {"url": url, "to": "t.conllu", "sentences": 2})[0].exists()


def test_mrpc_is_split_as_glue_splits_it(served, monkeypatch):
    head = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    rows = [f"{i % 2}\t{i}\t{i + 50}\tOne {i}.\tTwo {i}." for i in range(6)]
    files = {
        "msr_paraphrase_train.txt": "\ufeff" + "\r\n".join([head, *rows]),
        "msr_paraphrase_test.txt": head,
        "dev_ids.tsv": "1\t51\n4\t54\n",
    }
    downloads = [{"url": served(n, t.encode()), "to": f"glue/mrpc/{n}"} for n, t in files.items()]
    monkeypatch.setitem(fetching.RECIPES, "mrpc", tuple(downloads))
    fetching.fetch("mrpc")
    assert [p.first for p in corpora.pairs("mrpc", "dev")] == ["One 1.", "One 4."]
    assert [p.label for p in corpora.pairs("mrpc", "train")] == ["not_paraphrase"] * 2 + ["paraphrase"] * 2
    assert [p.first for p in corpora.pairs("mrpc", "train")] == ["One 0.", "One 2.", "One 3.", "One 5."]


def test_every_recipe_is_pinned_and_leads_to_the_catalogue():
    everywhere = {path for e in sources.CATALOGUE for paths in e.files.values() for path in paths}
    for name, downloads in fetching.RECIPES.items():
        assert any(e.name == name for e in sources.CATALOGUE)
        for d in downloads:
            members, digests = d.get("members", {}), d.get("digests", {})
            fixed = d["url"].startswith("https://") or re.fullmatch(r"pypi:[a-z0-9-]+==[0-9.]+", d["url"])
            targets = set(members.values()) or {d["to"]}
            assert fixed and (name in ("mrpc", "glove") or targets <= everywhere), name
            assert "sentences" in d or "sha256" in d or set(digests) == set(members), name
            pinned = filter(None, (d.get("sha256"), *digests.values()))
            assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in pinned)


def saved(folder: Path, **columns: list) -> str:
    datasets.Dataset.from_dict(columns).save_to_disk(folder)
    return str(folder)


LINE = "This line of text has more than ten words in it, I believe."


def test_text_of_a_saved_set(tmp_path):
    lines = saved(tmp_path / "lines", text=[" = One = \n", "", LINE, LINE, " = Two = \n", LINE, LINE])
    assert [(a.title, len(a.paragraphs)) for a in corpora.read(lines).articles] == [("One", 2), ("Two", 2)]
    rows = corpora.read(saved(tmp_path / "rows", text=[f"{LINE}\n\n{LINE}\n", f"{LINE}\n{LINE}\n{LINE}", None]))
    assert [len(a.paragraphs) for a in rows.articles] == [2, 3] and rows.own
    with pytest.raises(corpora.CorpusError):
        corpora.read(saved(tmp_path / "other", words=["a"]))


def test_pairs_of_a_saved_set(tmp_path):
    classes = datasets.ClassLabel(names=["entailment", "neutral", "contradiction"])
    features = datasets.Features(
        {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string"), "label": classes}
    )
    columns = {"premise": ["A\tdog ran.", "B.", "C."], "hypothesis": ["D.", "E.", "F."], "label": [1, -1, 2]}
    splits = {
        "train": datasets.Dataset.from_dict({"x": [1]}),
        "validation": datasets.Dataset.from_dict(columns, features),
    }
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "nli")
    pairs = corpora.pairs(str(tmp_path / "nli"), task="nli")
    assert [(p.first, p.second, p.label) for p in pairs] == [
        ("A dog ran.", "D.", "neutral"),
        ("C.", "F.", "contradiction"),
    ]
    numbers = saved(tmp_path / "mrpc", sentence1=["A.", "B."], sentence2=["C.", "D."], label=[1, 0])
    assert [p.label for p in corpora.pairs(numbers, task="mrpc")] == ["paraphrase", "not_paraphrase"]
    bare = saved(tmp_path / "bare", sentence1=["A."], sentence2=["B."])
    assert corpora.pairs(bare, labels=False) == (corpora.Pair("2", "A.", "B.", ""),)
    assert corpora.provenance(bare, "pairs").name == "bare"


def test_a_set_of_the_hub_is_loaded_once(monkeypatch):
    asked = []

    def load_dataset(*given, **options):
        asked.append((given, options["split"]))
        return datasets.Dataset.from_dict({"sentence1": ["A."], "sentence2": ["B."], "label": [1]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    for _ in range(2):
        (pair,) = corpora.pairs("hub:nyu-mll/glue/mrpc:train", task="mrpc")
        assert (pair.first, pair.second, pair.label) == ("A.", "B.", "paraphrase")
    assert asked == [(("nyu-mll/glue", "mrpc"), "train")]
    assert corpora.provenance("hub:nyu-mll/glue/mrpc:train", "pairs").name == "hub:nyu-mll/glue/mrpc:train"


def test_the_named_folder_comes_before_the_cache_and_the_book(cache, monkeypatch, tmp_path):
    named = tmp_path / "named"
    for folder in (cache / "corpora" / "qa", named / "qa"):
        folder.mkdir(parents=True)
        (folder / "dev-v1.1.json").write_text("{}")
    assert sources.locate("squad", "questions") == cache / "corpora" / "qa" / "dev-v1.1.json"
    monkeypatch.setenv("BOOK_DATA", str(named))
    assert sources.locate("squad", "questions", "dev") == named / "qa" / "dev-v1.1.json"
    assert sources.locate("encyclopedia", "questions").is_relative_to(places.book_data())
    with pytest.raises(corpora.CorpusError, match=r"qa/train-v1\.1\.json is in none of.*fetch squad.*--data DIR"):
        sources.locate("squad", "questions", "train")
