"""Small valid files of each format."""

import io
import json
import zipfile
from pathlib import Path

ARTICLE = {"id": "a", "title": "A", "topic": "t", "paragraphs": ["One.", "Two.", "Three."]}
QUESTION = {"id": "q1", "question": "Who ran?", "answers": [{"text": "dog", "answer_start": 4}]}
SQUAD = json.dumps({"data": [{"title": "T", "paragraphs": [{"context": "The dog ran.", "qas": [QUESTION]}]}]})


PAIRS = {
    "mrpc": '\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t7\t8\tHe said "no.\tHe "declined".\r\n',
    "rte": "index\tsentence1\tsentence2\tlabel\n0\tA dog ran.\tA dog.\tnot_entailment\n",
    "nli": "index\tsentence1\tsentence2\tlabel\tlabel3\n0\tA dog ran.\tA cat ran.\tnot_entailment\tneutral\n",
    "mnli": "index\tpromptID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n5\t1\tfiction\tA.\tB.\tneutral\tcontradiction\n6\t2\tx\tC.\tD.\tneutral\t-\n",
    "snli": "gold_label\tsentence1_parse\tsentence1\tsentence2\tpairID\nneutral\t(A)\tA man.\tA cat.\t3416.jpg#1\n",
}
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
CONLLU, ONTONOTES, ONTOGUM = (
    (DATA / name).read_text("utf-8") for name in ("valid.conllu", "valid_conll", "valid.conll")
)
"""One document in three formats."""
