"""What publishes the book: workflows, metadata, the PDF's parts, the files of a release."""

import json
import os
import re
import subprocess
import zipfile

import pytest
import yaml
from click.testing import CliRunner

from helpers import places
from helpers.run import publishing, social_card
from helpers.run.failures import NotebookError

BeautifulSoup = pytest.importorskip("bs4", reason="the extra book is not installed").BeautifulSoup
paper = pytest.importorskip("helpers.run.paper")

FOLDER = places.ROOT / ".github" / "workflows"
WORKFLOWS = {file.stem: yaml.safe_load(file.read_text("utf-8")) for file in sorted(FOLDER.glob("*.yml"))}
STEPS = [(name, step) for name, flow in WORKFLOWS.items() for job in flow["jobs"].values() for step in job["steps"]]
SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "custom.github-workflows-require-timeout": ".github/workflows/*.yml",
    "vendor.dependabot": ".github/dependabot.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "vendor.citation-file-format": "CITATION.cff",
}


def checked(schema, *files):
    from check_jsonschema import main

    return CliRunner().invoke(main, ["--builtin-schema", schema, *map(str, files)])


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_that_services_read_are_as_they_publish(schema):
    files = sorted(places.ROOT.glob(SCHEMAS[schema]))
    assert files
    done = checked(schema, *files)
    assert done.exit_code == 0, done.output


def test_a_broken_workflow_is_noticed(tmp_path):
    (tmp_path / "bad.yml").write_text("on: push\njobs: {a: {runs-on: x, steps: [{run: make book, used: y}]}}")
    assert "used" in checked("vendor.github-workflows", tmp_path / "bad.yml").output


def test_workflows_only_say_make():
    targets = set(re.findall(r"^([a-z-]+):", (places.ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    said = [step["run"] for _, step in STEPS if "run" in step]
    assert len(said) >= 12 and not any("\n" in one or "${{" in one for one in said)
    others = [one for one in said if not (found := re.match(r"make ([a-z-]+)", one)) or found[1] not in targets]
    assert [one.split('"')[0] for one in others] == ["gh release create "], "what no target can do"


def test_actions_are_pinned_and_rights_few():
    used = [step["uses"] for _, step in STEPS if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", one) for one in used)
    text = "".join(file.read_text("utf-8") for file in FOLDER.glob("*.yml"))
    assert len(re.findall(r"uses: \S+ # v\d+\.\d+\.\d+\n", text)) == len(used), (
        "which version a commit is, for people"
    )
    for name, flow in WORKFLOWS.items():
        assert flow["permissions"] == {"contents": "read"}, name
        for job in flow["jobs"].values():
            if not {"write"} & set(job.get("permissions", {}).values()):
                assert not any("env" in step for step in job["steps"]), name
    assert set(WORKFLOWS) == {"test", "preview", "publish", "refresh", "random", "record"}


def test_a_token_is_kept_only_where_something_is_pushed():
    for flow in WORKFLOWS.values():
        for job in flow["jobs"].values():
            writes = job.get("permissions", {}).get("contents") == "write"
            for step in job["steps"]:
                if "checkout" in step.get("uses", ""):
                    assert writes == step["with"].get("persist-credentials", True)


def test_the_archive_and_the_citation_say_the_same():
    cited = yaml.safe_load((places.ROOT / "CITATION.cff").read_text("utf-8"))
    archived = json.loads((places.ROOT / ".zenodo.json").read_text("utf-8"))
    assert archived["title"] == cited["title"] and archived["license"] in cited["license"]
    assert [one["name"] for one in archived["creators"]] == [one["name"] for one in cited["authors"]]


def test_before_a_commit_runs_what_make_lint_runs():
    hooks = yaml.safe_load((places.ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [hook["entry"] for repo in hooks for hook in repo["hooks"]] == ["make lint"]


# ---------------------------------------------------------------------------------------- what is pushed


@pytest.fixture
def checkout(tmp_path):
    """A repository with a remote, the Makefile, and a stand-in for the command that opens pull requests."""
    remote, here = tmp_path / "remote.git", tmp_path / "here"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(tmp_path, "init", "-q", "-b", "main", str(here))
    (here / "Makefile").write_text((places.ROOT / "Makefile").read_text("utf-8"))
    (here / "pyproject.toml").touch()
    (here / ".gitignore").write_text("_build\n")
    git(here, "add", "-A")
    git(here, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
    git(here, "remote", "add", "origin", str(remote))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(f'#!/bin/sh\n[ "$2" = create ] && echo "$*" >> {tmp_path}/asked || exit 1\n')
    (tmp_path / "bin" / "gh").chmod(0o755)
    return here


def git(folder, *words):
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make(folder, *words):
    path = f"{folder.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["make", *words], cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_copies_become_a_branch_of_one_commit(checkout):
    assert make(checkout, "push-launch")[0] != 0, "nothing to push"
    for text in ("one", "two"):
        file = checkout / "_build" / "launch" / "notebooks" / "01.ipynb"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        code, said = make(checkout, "push-launch")
        assert code == 0, said
        assert git(checkout.parent / "remote.git", "show", "launch:notebooks/01.ipynb") == text
    assert git(checkout.parent / "remote.git", "rev-list", "--count", "launch") == "1"
    assert git(checkout, "status", "--porcelain") == "" and git(checkout, "branch", "--show-current") == "main"


def test_a_pull_request_holds_what_has_changed(checkout):
    assert "Nothing has changed" in make(checkout, "propose")[1]
    (checkout / "new.json").write_text("{}")
    code, said = make(checkout, "propose", "BRANCH=record", "TITLE=Recorded results")
    assert code == 0, said
    assert git(checkout.parent / "remote.git", "show", "record:new.json") == "{}"
    assert "--head record --title Recorded results" in (checkout.parent / "asked").read_text("utf-8")


# ---------------------------------------------------------------------------------------- files of a release


def test_pages_are_packed_alike_each_time(tmp_path):
    pages = tmp_path / "html"
    with pytest.raises(NotebookError, match="make site"):
        publishing.packed(pages, tmp_path / "book.zip")
    for name in ("index.html", "_static/a.css", "_static/a.css.map"):
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(name)
    assert publishing.packed(pages, tmp_path / "book.zip") == 2
    os.utime(pages / "index.html", (1, 1))
    publishing.packed(pages, tmp_path / "again" / "book.zip")
    assert (tmp_path / "book.zip").read_bytes() == (tmp_path / "again" / "book.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "book.zip") as archive:
        assert archive.namelist() == ["book/_static/a.css", "book/index.html"]


def test_the_card_is_the_same_for_the_same_words():
    assert social_card.draw("A title", "A question?") == social_card.draw("A title", "A question?")
    assert social_card.draw("A title", "A question?") != social_card.draw("Another", "A question?")


# ---------------------------------------------------------------------------------------- on paper

CHAPTER = """<article class="bd-article"><section id="top"><h1>1. First<a class="headerlink" href="#top">#</a></h1>
<p id="p"><a href="#p">here</a> <a href="../book/b.html#x">there</a> <a href="../book/helpers.html">code</a> <a href="https://a.b/">away</a></p>
<figure><img src="../_images/a.png" loading="lazy"><iframe src="v.html"></iframe></figure><script>1</script>
<details class="hide above-input"><summary>Show</summary><pre>import</pre></details>
<details class="hide below-input"><summary>Show</summary><iframe></iframe></details>
<details class="hide below-input"><summary>Show</summary><pre>output</pre></details>
<details class="note"><summary>More</summary><p>folded</p></details>
<div class="exercise admonition" id="e"><p>Do it.</p></div>
<div class="solution admonition" id="s"><p><a href="#e">Solution</a></p></div><p>after</p></section></article>"""
OTHER = '<article class="bd-article"><section><h1>Second</h1><p id="x">text</p></section></article>'
TOC = "format: jb-book\nroot: book/b\nparts:\n- caption: Part\n  chapters:\n  - file: notebooks/a\n    sections:\n    - file: book/helpers\n"


@pytest.fixture
def built(tmp_path):
    """Folder of two pages, and their table of contents."""
    for name, text in {"html/notebooks/a.html": CHAPTER, "html/book/b.html": OTHER, "_toc.yml": TOC}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "html" / "_static").mkdir()
    return tmp_path / "html", tmp_path / "_toc.yml"


def test_pages_become_one_document(built):
    html, toc = built
    contents = paper.parts(toc)
    assert contents == [("", ["book/b"]), ("Part", ["notebooks/a"])]
    body, heads = paper.assembled(html, contents)
    soup = BeautifulSoup(body, "html.parser")
    assert heads == {"book/b": "Second", "notebooks/a": "1. First", "solutions": "Solutions"}
    assert [one["id"] for one in soup.find_all("article")] == ["book-b", "notebooks-a", "solutions"]
    links = {one.get_text(): one.get("href") for one in soup.find_all("a")}
    assert links["here"] == "#notebooks-a--p" and links["there"] == "#book-b--x"
    assert links["code"] is None and links["away"] == "https://a.b/"
    known = {one["id"] for one in soup.select("[id]")}
    assert {one["href"][1:] for one in soup.select('a[href^="#"]')} <= known
    assert not soup.select("script, iframe, .headerlink, details.hide, [loading]")
    assert soup.select_one("div.hide").text == "output", "no word above it that the page does not have"
    assert soup.select_one("img")["src"] == "../_images/a.png" and "open" in soup.select_one("details.note").attrs
    assert soup.select_one("#solutions .solution") and not soup.select_one("#notebooks-a .solution")
    assert "after" in soup.select_one("#notebooks-a").get_text()


def test_a_missing_page_is_said(built):
    html, toc = built
    (html / "book" / "b.html").unlink()
    with pytest.raises(NotebookError, match=r"b\.html.*make site"):
        paper.assembled(html, paper.parts(toc))


def test_without_a_browser_nothing_is_printed(monkeypatch):
    monkeypatch.setattr(paper.shutil, "which", lambda name: None)
    with pytest.raises(NotebookError, match="Chromium or Chrome"):
        paper.chromium()


def test_of_steps_three_stay():
    steps = "".join(f"<details><summary>{n}</summary><p>x</p></details>" for n in range(9))
    soup = BeautifulSoup(
        f'<div><div class="steps">{steps}</div><div class="steps"></div><details><summary>z</summary>y</details></div>',
        "html.parser",
    )
    paper.still(soup)
    assert [one.get_text() for one in soup.select(".steps summary")] == ["0", "4", "8"]
    assert len(soup.select("details[open]")) == 4


def test_the_trial_print_has_fields_for_pictures():
    picture = '<img alt="a" height="20" src="../_images/a.png" width="30"/>'
    field = paper.blank(picture)
    assert "a.png" not in field and "width='30' height='20'" in field and field.count('"') == picture.count('"')
    for other in ('<img src="../_images/a.png"/>', '<img height="2" src="a.svg" width="3"/>', "<p>a.png</p>"):
        assert paper.blank(other) == other


@pytest.mark.browser
@pytest.mark.skipif(not any(map(paper.shutil.which, paper.BROWSERS)), reason="no chromium on this machine")
def test_the_contents_name_the_sheets(built):
    html, toc = built
    target = html.parent / "dist" / "book.pdf"
    count = paper.make(html, toc, target, title="A book", below="Version 1")
    found = paper.sheets(target.read_bytes())
    assert count == 5 == found[""], "title, contents, two pages, solutions"
    assert (found["book-b"], found["notebooks-a"], found["solutions"]) == (3, 4, 5)
    assert not (html / "_static" / "paper.html").exists()
