"""The teacher's guide of a chapter, one or two pages, and how much of it fits into a lesson."""

from helpers.run.teaching.form import Form, Prediction, Section
from helpers.run.templates import template

SPOKEN = 1.25
"""Minutes of speaking for a minute of reading."""
PREDICTION, DISCUSSION = 4, 5
"""Minutes for a prediction, and for a question that is discussed."""


def text(form: Form) -> str:
    """The guide as Markdown."""
    skipped = [section.title for section in form.sections if section.title in form.taught["skip"]]
    kept = [section for section in form.sections if section.title not in skipped]
    return template("guide.md.j2").render(
        form=form,
        skipped=[f"*{title}*" for title in skipped],
        predictions=predictions,
        prediction=PREDICTION,
        discussion=DISCUSSION,
        whole=lesson(form.sections, len(form.taught["discussion"])),
        short=lesson(kept, 1),
    )


def predictions(section: Section) -> int:
    """How many predictions a section asks for."""
    return sum(isinstance(item, Prediction) for item in section.items)


def lesson(sections: list[Section], questions: int) -> int:
    """Minutes that sections take when they are taught, with so many questions for discussion."""
    spoken = sum(SPOKEN * section.minutes + PREDICTION * predictions(section) for section in sections)
    return round(spoken + DISCUSSION * questions)
