"""The live page: its encoder and tokenizer are the book's, and a reader can use it without a mouse, from a disk and from a server."""

import re

import numpy as np
import pytest
import torch
from browser import Page
from conftest import from_data

from helpers import attention, tokens
from helpers.heads import Head
from helpers.models import EncoderError
from helpers.run import atlas, live
from helpers.run.live import ask

LARGEST, MEAN = 0.03, 0.001
OPENED = "(buttons) => buttons.map(({ dataset }) => dataset.open)"
TEXTS = from_data("texts")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(minilm, tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    known = atlas.models(["minilm"])["minilm"]
    (folder / "index.html").write_text(live.write(minilm, folder, known=known), "utf-8")
    return folder


@pytest.fixture(scope="module")
def page(folder, chromium):
    """The page, opened from the disk, with its model."""
    chromium.open(folder / "index.html")
    chromium.tab.click(".load")
    yield chromium
    assert chromium.problems == [] and all(address.startswith(("file:", "blob:")) for address in chromium.requests)


def own_maps(encoder, ids, edit=None, **inputs):
    """[layer, head, query, key] of the encoder itself, before the edit."""
    maps = []
    with (
        attention.tap(encoder, lambda _, weights, values: maps.append(weights[0].numpy()), edit),
        torch.inference_mode(),
    ):
        states = encoder.model(torch.tensor([ids]), **inputs).last_hidden_state[0]
    return np.stack(maps), states.mean(0)


def test_tokens_and_attention_are_those_of_the_model(page, minilm):
    apart = []
    for text in (*TEXTS, "中文 and かな and 한국어 and Ελληνικά"):
        ids = minilm.tokenizer(text, truncation=True, max_length=48, split_special_tokens=True).input_ids
        answer = ask(page.tab, first=text)
        assert answer["tokens"] == minilm.tokenizer.convert_ids_to_tokens(ids), text
        if text in TEXTS:  # rounding moves other scripts, of which the model knows single signs, by up to 0.05
            apart.append(np.abs(np.array(answer["maps"]) - own_maps(minilm, ids)[0]).ravel())
    apart = np.concatenate(apart)
    assert apart.max() <= LARGEST and apart.mean() <= MEAN, (apart.max(), apart.mean())


def test_heads_that_are_off_are_those_that_zero_switches_off(page, minilm):
    ids = minilm.tokenizer(TEXTS[0]).input_ids
    off = [(2, 0), (0, 2), *((3, head) for head in range(12))]
    answer = ask(page.tab, off=",".join(f"{layer + 1}-{head + 1}" for layer, head in off))
    maps, vector = own_maps(minilm, ids, attention.zero(off))
    whole, with_all = own_maps(minilm, ids)
    apart = np.abs(np.array(answer["maps"]) - maps)
    assert apart.max() <= LARGEST and apart.mean() <= MEAN and np.abs(whole - maps).max() > 10 * LARGEST
    assert answer["cosine"] == pytest.approx(torch.cosine_similarity(vector, with_all, dim=0).item(), abs=0.002)
    moved = {str(Head.of(head)): np.abs(whole - maps).max((2, 3))[head] for head in np.ndindex(6, 12)}
    effect, opened = page.tab.inner_text(".effect"), page.tab.eval_on_selector_all("[data-open]", OPENED)
    most = int(re.search(r"up to (\d+) points", effect)[1])
    assert most == pytest.approx(100 * max(moved.values()), abs=200 * LARGEST)
    assert len(opened) == 3 and min(map(moved.get, opened)) > sorted(moved.values())[-3] - 2 * LARGEST
    assert "Heads of layer 1 cannot change; 3-1 is drawn as it still computes it." in effect


def test_a_pair_places_and_another_first_token(page, minilm):
    first, second = TEXTS[1], TEXTS[0]
    pair = tokens.encode(minilm, [(first, second)])
    answer = ask(page.tab, first=first, second=second, shown="joined")
    assert answer["tokens"] == list(pair.tokens[0])
    assert np.abs(np.array(answer["maps"]) - attention.maps(minilm, pair)[:, 0].numpy()).max() <= LARGEST
    the, *rest = minilm.tokenizer("the " + first).input_ids[1:]
    for opening, ids in (("the", [the, *rest]), ("", rest)):
        answer = ask(page.tab, first=first, opening=opening, start=50)
        places = torch.arange(50, 50 + len(ids))[None]
        assert len(answer["tokens"]) == len(ids)
        assert np.abs(np.array(answer["maps"]) - own_maps(minilm, ids, position_ids=places)[0]).max() <= LARGEST


def test_the_untrained_network_looks_everywhere_alike(page):
    answer = ask(page.tab, seed=1)
    maps = np.array(answer["maps"])
    assert np.allclose(maps.sum(-1), 1, atol=1e-3) and 0 < maps.std() < 0.02
    assert np.array_equal(maps, ask(page.tab, seed=1, head="4-4")["maps"])
    assert not np.array_equal(maps, ask(page.tab, seed=2)["maps"])
    for seed, begins in ((2, "Of the trained network: The object head. Points"), ("", "The object head. Points")):
        ask(page.tab, seed=seed)
        assert page.tab.inner_text(".about").startswith(f"{begins} from objects to their verb")


def test_a_link_to_another_sentence_waits_for_the_model_which_enter_loads(page, folder):
    tab = page.tab.context.browser.new_page()
    tab.goto(f"{(folder / 'index.html').as_uri()}#first=A+dog+slept")
    assert tab.inner_text(".needs").startswith("This link needs the model: load it (25 MB)")
    tab.fill("[name=first]", "A cat slept")
    tab.wait_for_function("document.querySelector('.needs').textContent.startsWith('This needs the model')")
    pale = "document.querySelectorAll('.left .stale').length + document.querySelectorAll('.right.stale').length"
    assert tab.evaluate(pale) == 73
    tab.keyboard.press("Enter")
    tab.wait_for_function("document.querySelector('.note').textContent.endsWith(' s.')")
    assert tab.evaluate(pale) == 0 and not tab.is_visible(".needs") and "cat" in tab.inner_text(".answers")
    tab.close()


def test_a_reader_finds_switches_off_and_links_without_a_mouse(page, minilm):
    tab = page.tab
    ask(tab, first=TEXTS[0])
    tab.focus("[data-head='3-2']")
    tab.keyboard.press("ArrowUp")
    assert "3-1" in tab.inner_text(".pointed") and tab.inner_text(".title") == "Head 3-1"
    tab.keyboard.press("x")
    tab.wait_for_function("document.querySelector('.effect').textContent.includes('cosine 0.99')")
    assert tab.inner_text(".title") == "Head 3-1" and tab.evaluate("location.hash") == "#off=3-1"
    answers = dict(re.findall(r"^(\w+)\t(\w+)\t", tab.inner_text(".answers"), re.MULTILINE))
    assert {answers[word] for word in ("an", "old", "letter")} == {"put"}
    tab.focus(".lines [role=option]")
    tab.keyboard.press("ArrowDown")
    assert tab.inner_text(".says").startswith("“the” gives [CLS] ")
    tab.focus("[data-open]")
    tab.keyboard.press("Enter")
    assert tab.inner_text(".title") == f"Head {tab.evaluate('document.activeElement.dataset.open')}" != "Head 3-1"
    ask(tab, first="One", second="And another one")
    assert tab.inner_text(".note").startswith("3 + 5 tokens") and tab.is_visible("[name=second]")
    for width, theme in ((1280, "light"), (390, "dark")):
        page.look(width, theme)
        assert page.barriers() == [] and page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    ask(tab, first=TEXTS[0])
    tab.click("[data-head='6-12']")
    tab.wait_for_function("Math.abs(document.querySelector('.right').getBoundingClientRect().top) < 200")


def test_on_a_server_the_browser_keeps_the_model(page, folder):
    home, other = "https://book.example/some/path/", Page(page.tab.context.browser.new_page())
    tab = other.tab
    tab.route("**/*", lambda route: route.fulfill(path=folder / route.request.url.removeprefix(home).split("?")[0]))
    tab.goto(f"{home}index.html#head=3-5&off=3-5")
    assert tab.inner_text(".title") == "Head 3-5"
    tab.click(".load")
    tab.wait_for_function("document.querySelector('.effect').textContent.includes('cosine')")
    tab.wait_for_function(f"caches.match('{home}model.js', {{ ignoreSearch: true }}).then(Boolean)")
    other.requests.clear()
    tab.reload()
    tab.wait_for_function("document.querySelector('.effect').textContent.includes('cosine')")
    asked = [address for address in other.requests if not address.startswith("blob:")]
    tab.close()
    assert all(address.startswith(home) for address in asked) and not any("model.js" in address for address in asked)


def test_a_small_bert_of_ones_own_joins_and_others_are_refused(page, small_encoder, tmp_path):
    (tmp_path / "index.html").write_text(live.write(small_encoder("bert"), tmp_path), "utf-8")
    other = Page(page.tab.context.browser.new_page())
    other.open(tmp_path / "index.html")
    other.tab.focus(".load")
    other.tab.keyboard.press("Enter")
    assert other.tab.evaluate("document.activeElement.name") == "first"
    answer = ask(other.tab, first="a b c d e f g h i j k l m n o p", start=50)
    other.tab.close()
    assert np.shape(answer["maps"]) == (3, 4, 14, 14) and answer["cut"] == 4 and other.problems == []
    for encoder, why in ((small_encoder("roberta"), "RobertaModel"), (small_encoder("bert", hidden_size=1800), "MB")):
        with pytest.raises(EncoderError, match=why):
            live.write(encoder, tmp_path)
