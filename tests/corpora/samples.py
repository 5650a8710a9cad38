"""Small valid files of each format."""

import io
import json
import zipfile
from pathlib import Path

from conftest import from_data

ARTICLE = {"id": "a", "title": "A", "topic": "t", "paragraphs": ["One.", "Two.", "Three."]}
QUESTION = {"id": "q1", "question": "Who ran?", "answers": [{"text": "dog", "answer_start": 4}]}
SQUAD = json.dumps({"data": [{"title": "T", "paragraphs": [{"context": "The dog ran.", "qas": [QUESTION]}]}]})

ASKED = (
    b'Question,Answer,Origin\n"For the statement, ""He ran."", does the hypothesis ""He moved."" represent entailment, '
    b'contradiction, or neutrality?",entailment,mnli\n'
)


def zipped(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


ABSTRACT = {
    "10.abstr": b"Ten\n\ttitles\r\nThe text\n\tgoes on.\n",
    "10.uncontr": b"the text; missing\n\tphrase;\n",
    "9.abstr": b"Nine\nText.\n",
    "9.uncontr": b"nine",
    "9.contr": b"ignored",
}


DATA = Path(__file__).parents[1] / "data"
READERS = from_data("readers")
PAIRS = {task: file for task, (file, _) in READERS["pairs"].items()}
CONLLU, ONTONOTES, ONTOGUM = (
    (DATA / name).read_text("utf-8") for name in ("valid.conllu", "valid_conll", "valid.conll")
)
"""One document in three formats."""


def surface(document, mention) -> str:
    """The words of a mention."""
    return " ".join(document.sentences[mention.sentence].words[mention.start : mention.end])
