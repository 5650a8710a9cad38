"""Chapter 14: the numbers of a card, of its control and of the second model's card as rows of the tidy table."""

from helpers.results import RANDOM, SHUFFLED, Blocks, Record, rows

PLACES = ("cls", "sep", "punctuation", "other")


def tidy(record: Record) -> Blocks:
    """The numbers of a record, for :func:`helpers.results.record`."""
    card, second = record["values"]["card"], record["values"]["other"]
    model = {"model": second["model"]["name"], "sha256": second["model"]["sha256"]}
    network = RANDOM if model["model"].endswith(RANDOM) else model["model"]
    parameters = record["provenance"]["parameters"]
    yield from _card(card, parameters, network="")
    yield from _card(second, parameters, network=network, **model)
    if card["shuffled"]:
        shared = {"units": card["units"], "chance": card["chance"]}
        yield from _card(shared | card["shuffled"], parameters, network=SHUFFLED)


def _card(card: Record, parameters: Record, **whose: str) -> Blocks:
    """The numbers of one card; the control's part of one has neither types nor the places of its heads."""
    texts = whose | {"n": card["units"]["tokens"], "against": ""}
    yield rows("share", card["shares"], "layer", PLACES, **texts)
    yield rows("entropy", card["entropy"], "layer", **texts)
    if card["chance"]["cls"]:  # a tokenizer may add no such token
        multiple = {end: share / card["chance"]["cls"] for end, share in card["to"]["cls"].items()}
        yield rows("times_even_share", multiple, of="cls", **texts)
    yield rows("type", card.get("types"), "layer", "head", **whose, n=card["units"]["segments"])
    for relation, row in card["relations"].items():
        trees = whose | {"corpus": parameters.get("treebank"), "split": "test", "against": "best fixed offset"}
        trees |= {"of": relation, "n": row.get("count"), "label": row.get("direction"), "place": _place(row)}
        yield rows("best_for_relation", row["held_out"], control=row.get("baseline"), **trees)
        yield rows("lead_for_relation", row["gain"], **trees)
    for kind, row in card["coreference"].items():
        chains = whose | {"corpus": parameters.get("coreference"), "split": "test", "against": "nearest mention"}
        chains |= {"of": kind, "n": row.get("count"), "place": _place(row)}
        yield rows("best_for_antecedent", row["held_out"], control=row.get("nearest"), **chains)


def _place(row: Record) -> tuple[int, int] | None:
    return (row["layer"], row["head"]) if "layer" in row else None
