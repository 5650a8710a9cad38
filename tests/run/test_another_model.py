"""A model that the book has never seen, through every chapter and into a report."""

import re
from html import unescape

import pytest
from conftest import small_model
from executed import assert_whole

from helpers.engine import encoders
from helpers.run import notebooks, report

REFUSED = {
    "03_no_op": "has no head for 'mlm'",
    "10_ablation_by_type": "has no head for 'qa'",
    "11_head_importance": "needs a head for at least 1 of mlm, paraphrase. 'mine' has no head for 'mlm'",
}
"""The chapters that need a task head, and what they say of a model without one; chapter 13 leaves its tagger's part out."""


@pytest.mark.journey
@pytest.mark.notebooks
@pytest.mark.timeout(1800)  # fourteen kernels: a few minutes, or many where the cores are busy
def test_a_new_model_goes_through_all_chapters_and_into_a_report(tmp_path, minilm):
    """A small DistilBERT with random weights, 64 positions and no head, in a folder."""
    folder = tmp_path / "mine"
    small_model("distilbert").save_pretrained(folder)
    minilm.tokenizer.save_pretrained(folder)
    kept = {"profile": "smoke", "results": tmp_path / "results"}
    given = {"model": str(folder)}
    runs = notebooks.run(notebooks.chapters(), tmp_path / "out", given=given, keep_going=True, **kept)
    assert {run.chapter: run.problem for run in runs if run.failed} == {}
    refused = {run.chapter: run.problem for run in runs if run.problem}
    assert list(refused) == list(REFUSED)
    for chapter, why in refused.items():
        assert REFUSED[chapter] in why.replace(f"{tmp_path}/", "") and "\n" not in why
        assert re.search(
            rf"Train an adapter: python -m helpers train (mlm|qa) --model {re.escape(str(folder))};", why
        )
    done = [run for run in runs if not run.problem]
    for run in done:
        assert_whole(run, without=["fig-key-remove", "fig-key-curves"])  # the tagger's
    recorded = {file.stem for file in (tmp_path / "results").rglob("*.json")}
    assert recorded == {run.chapter[3:] for run in done} - {"transformer_refresher"}
    page = report.write(runs, tmp_path / "report.html", **kept).read_text("utf-8")
    assert f"{len(done)} of {len(runs)} chapters" in page and "mine: DistilBertModel, 3 × 4 heads" in page
    for chapter, why in refused.items():
        assert f"<td>{chapter}</td><td>skipped</td><td>{why}</td>" in unescape(page)
    for run in runs:
        assert (f'id="chapter-{int(run.chapter[:2])}"' in page) == (run.chapter not in REFUSED)
    assert page.index("The card.") < page.index("03_no_op") < page.index('id="chapter-1"')
    assert f"No tagger for {str(folder)!r}" in unescape(page)
    assert encoders.load(str(folder)).sha256 in page and "<script" not in page
