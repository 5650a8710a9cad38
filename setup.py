"""What ``pyproject.toml`` cannot say: the version, from the tag; and what a wheel carries beside the code."""

import json
import re
import shutil
import subprocess
from email import message_from_string
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
BEFORE_ANY_TAG = "0.1.0"
TAG = re.compile(r"v\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?")
CARRIED = (
    "data",
    "notebooks",
    "book/profiles",
    "book/*.md",
    "book/_static/live",
    "book/references.bib",
    "requirements.lock",
    "environment.lock",
)
"""What running chapters needs; ``helpers/places.py`` finds it in the package where there is no checkout."""
LEFT_OUT = (r"\.ipynb_checkpoints/", r"^notebooks/ruff\.toml$")


def version() -> str:
    """That of the newest tag (``v1.2.0``) which the checkout contains; of an unpacked source distribution, its own."""
    command = ["git", "-C", str(ROOT), "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]
    try:
        tag = (ROOT / ".git").exists() and subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:  # no git on this machine
        tag = ""
    if tag and not TAG.fullmatch(tag):
        raise SystemExit(f"The tag {tag} names no version; those that do are like v1.2.0 and v1.2.0rc1.")
    if tag:
        return tag.removeprefix("v")
    packed = ROOT / "PKG-INFO"
    return message_from_string(packed.read_text("utf-8"))["Version"] if packed.is_file() else BEFORE_ANY_TAG


def carried() -> list[Path]:
    """The files, relative to the checkout."""
    found = [path for pattern in CARRIED for path in ROOT.glob(pattern)]
    every = [file for path in found for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    names = sorted({file.relative_to(ROOT) for file in every})
    return [name for name in names if not any(re.search(pattern, name.as_posix()) for pattern in LEFT_OUT)]


def without_outputs(notebook: str) -> str:
    """A notebook to be run: outputs, which are half of the wheel, are on the pages."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


class WithBook(build_py):
    """Beside the modules, a wheel carries data and notebooks; an editable installation finds those of the checkout."""

    def run(self) -> None:
        shutil.rmtree(Path(self.build_lib) / "helpers" / "packed", ignore_errors=True)
        super().run()
        if not self.editable_mode:
            for name in carried():
                self._carry(name, Path(self.build_lib) / "helpers" / "packed" / name)

    def _carry(self, name: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.suffix == ".ipynb":
            target.write_text(without_outputs((ROOT / name).read_text("utf-8")), "utf-8")
        else:
            shutil.copyfile(ROOT / name, target)


if __name__ == "__main__":  # tests look at the rest
    setup(version=version(), cmdclass={"build_py": WithBook})
