"""Small valid files of each format."""

import io
import json
import zipfile

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


ROWS = """# newdoc id = d
# global.Entity = eid-etype-head
# sent_id = d-1
1 Ann ann PROPN NNP _ 2 nsubj _ Entity=(1-person-1)
2 sold sell VERB VBD _ 0 root _ _
3 her her PRON PRP$ _ 4 nmod:poss _ Entity=(2-animal-2(1-person-1)
4 dog dog NOUN NN _ 2 obj _ Entity=2)
5 . . PUNCT . _ 2 punct _ _

# sent_id = d-2
1 She she PRON PRP _ 2 nsubj _ Entity=(1-person-1)
2 missed miss VERB VBD _ 0 root _ _
3 it it PRON PRP _ 2 obj _ Entity=(2-animal-1)
4 . . PUNCT . _ 2 punct _ _

"""
CONLLU = "\n".join(row if row.startswith("#") else row.replace(" ", "\t") for row in ROWS.split("\n"))
ONTONOTES = """#begin document (d); part 000
d 0 0 Ann NNP * - - - - * (1)
d 0 1 sold VBD * - - - - * -
d 0 2 her PRP$ * - - - - * (2|(1)
d 0 3 dog NN * - - - - * 2)
d 0 4 . . * - - - - * -

d 0 0 She PRP * - - - - * (1)
d 0 1 missed VBD * - - - - * -
d 0 2 it PRP * - - - - * (2)
d 0 3 . . * - - - - * -

#end document
"""
ONTOGUM = """# begin document
0\tAnn\t(1)
1\tsold\t_
2\ther\t(2(1)
3\tdog\t2)
4\t.\t_
5\tShe\t(1)
6\tmissed\t_
7\tit\t(2)
8\t.\t_
# end document
"""
