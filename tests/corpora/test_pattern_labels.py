"""Labels of single maps: they are of the maps that were drawn, and a wrong one is refused with its line."""

import pytest

from helpers.corpora.sources import CorpusError
from helpers.measurements import pattern_types


def test_labels_are_of_the_maps_that_were_drawn(minilm, small_encoder):
    choice = [i for task, name in pattern_types.BOOK_CORPORA.items() for i in pattern_types.items(task, name)]
    assert {i.document for i in choice} == set(range(100)), "one document for each article"
    of_its_shape = small_encoder("bert", num_hidden_layers=12, num_attention_heads=12, hidden_size=48)
    for seed, (encoder, name, count) in enumerate(((minilm, "minilm", 240), (of_its_shape, "mpnet", 72))):
        labels = [x for x in pattern_types.read_labels() if x.model == name]
        assert [(x.head, x.item) for x in labels] == pattern_types.draw(encoder, choice, count, seed=seed)
    assert not any(x.head[0] == 0 or x.type not in ("vertical", "vertical_diagonal") for x in labels), "mpnet's"
    with pytest.raises(ValueError, match="give more items"):
        pattern_types.draw(minilm, choice[:1], 73, seed=0)


def test_wrong_labels_are_refused_with_their_line(tmp_path):
    header, file = ",".join(pattern_types.COLUMNS), tmp_path / "labels.csv"
    wrong = {"minilm,1,1,text,text/9999,dev,block,": "an input of the book tier", "minilm,1,text": "8 columns"}
    wrong |= {"minilm,1,1,text,text/1,dev,block,stripes": "types are", "minilm,0,1,text,text/1,dev,block,": "'0'"}
    for row, says in wrong.items():
        file.write_text(f"{header}\n{row}\n")
        with pytest.raises(CorpusError, match=f"line 2: .*{says}"):
            pattern_types.read_labels(file)
