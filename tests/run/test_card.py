"""The card of a model: its texts, its numbers, which are the chapters' own, odd models; a head by its name, and the page."""

import re

import numpy as np
import pytest
from click.testing import CliRunner

from helpers import attention, card, results
from helpers.__main__ import main
from helpers.corpora import CorpusError
from helpers.measurements import coreference, divergence, head_types, surface, syntax
from helpers.run.card import sample

SMALL = {"segments": 8, "documents": 5, "choose_on": ("dev",)}
ALIKE = ("encyclopedia",) * 3


@pytest.fixture(scope="module")
def encoder(small_encoder):
    return small_encoder("distilbert", max_position_embeddings=128)


@pytest.fixture(scope="module")
def made(encoder):
    return card(encoder, **SMALL)


def test_a_sample_is_the_same_for_all_and_has_two_halves(tmp_path):
    texts, again = (sample(*ALIKE, **SMALL) for _ in range(2))
    assert again.segments == texts.segments and again.trees == texts.trees
    assert len(texts.segments) == 8 and [len(part) for part in texts.trees] == [5, 5]
    assert not {d.id for d in texts.trees[0]} & {d.id for d in texts.trees[1]}
    alone = tmp_path / "one.txt"
    paragraph = "The otter dived, and it came up with a shell that it laid on its belly.\n"
    alone.write_text(" = One = \n" + 4 * paragraph)
    with pytest.raises(CorpusError, match="text of several articles"):
        sample(str(alone), *ALIKE[1:], segments=2)


@pytest.mark.slow
def test_a_card_has_the_numbers_of_the_chapters(made, encoder):
    def grid(quantity, of=None, column="value"):
        rows = made.table[(made.table.quantity == quantity) & made.table["head"].notna()]
        return rows[rows.of == of if of else rows.of.isna()][column].to_numpy().reshape(made.shape)

    texts = sample(*ALIKE, **SMALL)
    assert list(made.table) == list(results.COLUMNS) and set(made.table.model) == {made.name}
    looks = attention.measure(encoder, texts.segments, surface.look, longest=surface.MOST_TOKENS)
    assert np.allclose(grid("share_cls"), surface.patterns(looks, texts.segments)["cls"].value, atol=1e-6)
    features = head_types.measure(encoder, [s.texts for s in texts.segments], documents=texts.segments)
    assert (grid("type", column="label") == head_types.types(features.all.value, features.even).names).all()
    pairs = made.table[made.table.quantity == "divergence"]
    apart = divergence.measure(encoder, texts.segments).mean()
    assert np.allclose(pairs.value, apart[~np.eye(len(apart), dtype=bool)], atol=1e-6)
    parts = [syntax.trees(encoder, part) for part in texts.trees]
    dev, test = map(syntax.score, syntax.answers(encoder, *parts), parts)
    assert np.allclose(grid("found_by_governor", "det"), test.accuracy("det")[..., 1], atol=1e-6)
    best = made.table[(made.table.quantity == "best_for_relation") & (made.table.of == "det")].iloc[0]
    place = dev.hits[dev.asked("det")].best()
    assert (best.layer - 1, best["head"] - 1) == place[:2] and best.label == syntax.DIRECTIONS[place[2]]
    dev, test = (coreference.measure(encoder, part) for part in texts.chains)
    best = made.table[(made.table.quantity == "best_for_antecedent") & (made.table.of == "all")].iloc[0]
    place = dev.hits.best()
    assert (best.layer - 1, best["head"] - 1) == place and np.isclose(best.value, test.hits.accuracy()[place])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "changes", "without"),
    [
        ("bert", {"num_hidden_layers": 1, "num_attention_heads": 2}, {"divergence_map"}),
        ("deberta-v2", {"num_attention_heads": 1}, set()),
        ("bert", {"max_position_embeddings": 8}, {"dependency_heads", "coreference_heads"}),
    ],
)
@pytest.mark.journey
def test_odd_models_have_a_card_too(small_encoder, family, changes, without):
    encoder = small_encoder(family, **changes)
    odd = card(encoder, **SMALL)
    assert set(odd.missing) == without and all(chapter in odd._repr_html_() for chapter in without)
    assert (odd.table.quantity == "type").sum() == encoder.layers * encoder.heads
    assert bool(odd.best()) == ("dependency_heads" not in without)


@pytest.mark.slow
def test_the_command_writes_the_page(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("helpers.run.card.sample", lambda *corpora, **options: sample(*corpora, **options | SMALL))
    done = CliRunner().invoke(main, ["card", "--model", str(folder), "--to", str(tmp_path / "card.html")])
    assert done.exit_code == 0, done.output
    assert "mine: 3 layers of 4 heads" in (tmp_path / "card.html").read_text("utf-8")


@pytest.mark.slow
def test_a_head_is_found_by_its_name(made):
    head = made["2-1"]
    assert set(head.table.layer) == {2} and set(head.table["head"]) == {1} and "2-1" in head._repr_html_()
    leads = [row.value - row.control for row in head.relations()]
    assert leads == sorted(leads, reverse=True) and all(lead > 0 for lead in leads)
    for name in ("0-1", "1-0", "99-1", "1-99", "head", "1-1-1", ""):
        with pytest.raises(KeyError, match=name or "''"):
            made[name]


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_works_by_keyboard(made, chromium, tmp_path):
    file = made.save(tmp_path / "head.html")
    text = file.read_text("utf-8")
    assert len(re.findall(r' id="\d+-\d+"', text)) == made.shape[0] * made.shape[1]
    assert not re.search(r"<script|\bsrc=|url\(|@import", text)
    chromium.open(file)
    chromium.tab.focus('a[href="#2-1"]')
    chromium.tab.keyboard.press("Enter")
    chromium.wait("document.querySelector(':target h3').textContent.startsWith('2-1')")
    assert chromium.problems == []
