"""Sets of the Hugging Face hub, or saved with ``save_to_disk``: written as files that :mod:`helpers.corpora.formats` reads."""

import hashlib
from functools import partial
from pathlib import Path

from helpers import places
from helpers.corpora.formats import TASKS
from helpers.corpora.sources import CorpusError, label

COLUMNS = {"text": (("text",),), "pairs": (("premise", "sentence1"), ("hypothesis", "sentence2"))}
"""For each kind that a set may have, the columns that are needed, each with the names that it may have."""


def written(name: str, kind: str) -> Path:
    """The file, in the user's cache, with the texts or the pairs of a set; a set of the hub is loaded once.

    A row of text with several lines becomes an article; rows of one line each are the lines of one text. The classes of pairs
    have their names where a task of :data:`helpers.corpora.formats.TASKS` knows them, and are numbers otherwise.

    Args:
        name: ``hub:OWNER/NAME``, where needed with ``/CONFIG`` and ``:SPLIT`` after it; or the path of a folder. Without a split:
            validation, else test, else the first.
        kind: ``text`` or ``pairs``.

    Raises:
        CorpusError: when the set or split cannot be loaded, and for missing columns.
    """
    wrong = partial(CorpusError, name, None)
    if kind not in COLUMNS:
        raise wrong(f"A set cannot be read as {kind}.", "a file; sets are read as text and as pairs.")
    folder = places.cache() / "corpora" / "hub" / hashlib.sha256(name.encode()).hexdigest()[:8]
    file = folder / f"{label(name).replace('/', '--').replace(':', '--')}.{kind}"
    if name.startswith("hub:") and file.exists():
        return file
    import datasets
    from huggingface_hub import HfApi

    repository, _, split = name.removeprefix("hub:").partition(":")
    try:
        if name.startswith("hub:"):
            owner, title, *config = repository.split("/", 2)
            # Where the hub is out of reach, load_dataset would try for half a minute.
            HfApi().dataset_info(f"{owner}/{title}", timeout=6)
            table = datasets.load_dataset(f"{owner}/{title}", *config, split=split or None)
        else:
            table = datasets.load_from_disk(name)
    except Exception as error:  # whatever the hub's client, or a damaged folder, raises
        problem = f"The set cannot be loaded ({type(error).__name__}: {' '.join(str(error).split()):.200})."
        raise wrong(problem, "hub:OWNER/NAME/CONFIG:SPLIT and a connection to the hub, or a saved set.") from None
    if isinstance(table, dict):
        table = table[next((split for split in ("validation", "test") if split in table), next(iter(table)))]
    columns = [next((c for c in names if c in table.column_names), None) for names in COLUMNS[kind]]
    if None in columns:
        wanted = " and ".join(" or ".join(names) for names in COLUMNS[kind])
        raise wrong(f"The columns are {', '.join(table.column_names)}.", f"among them {wanted}.")
    if kind == "text":
        rows = [(text or "").strip() for text in table["text"]]
        lines = [f" = {number} = \n" * ("\n" in row) + row for number, row in enumerate(rows, 1)]
    else:
        labels = table["label"] if "label" in table.column_names else [""] * len(table)
        known = {word for words in TASKS.values() for word in words}
        names = enumerate(getattr(table.features.get("label"), "names", ()))
        words = {number: word for number, word in names if word in known} | {-1: "-", None: "-"}
        rows = zip(
            *(table[column] for column in columns), (words.get(number, number) for number in labels), strict=True
        )
        lines = ["\t".join(" ".join(str(cell).split()) for cell in row) for row in rows]
        lines = ["sentence1\tsentence2\tlabel", *lines]
    places.write(file, "\n".join(lines) + "\n")
    return file
