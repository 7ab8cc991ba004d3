"""Writes docs/results/{experiments,profilers}.md, and the figures in the pages that tell what they mean, from the
records of `picokernel bench ... --json docs/results/experiments*.json` and profilers*.json. `--check` only
compares; a test does.

In a page, what stands between `<!-- chain: table 2, sentences -->` and `<!-- end -->` is of the first
record: the tables and sentences of that experiment, numbered from 1. `<!-- h200 chain: table 2 -->` is of
experiments-h200.json.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from picokernel.bench import EXPERIMENTS  # noqa: E402

RESULTS = ROOT / "docs/results"
HEAD = """# {title}, recorded

Made by `scripts/make_experiments.py` from `{name}*.json` beside it, which `picokernel bench {command} --json FILE` and its kin write.
What they mean is told in [{page}](../{page}).
"""
RECORDS = {  # name -> title, command, page that tells of them
    "experiments": ("The experiments", "all", "where-time-goes.md"),
    "profilers": ("Profilers", "profilers", "profiling.md"),
    "mlx": ("Arrays of MLX", "mlx", "mlx.md"),
}
BLOCK = re.compile(r"(<!-- (?:(\w+) )?(\w+): ([\w, ]+) -->\n).*?(<!-- end -->)", re.S)


def records(name):
    """(name, record) of each file, the main one first."""
    paths = sorted(RESULTS.glob(f"{name}*.json"), key=lambda path: path.stem)
    return [(path.name, json.loads(path.read_text())) for path in paths]


def sections(record):
    """Experiment -> its sections."""
    return {
        name: EXPERIMENTS[name].sections(record[name]) for name in EXPERIMENTS if name in record
    }


def results(head, found):
    parts = [head]
    for name, record in found:
        facts = "\n".join(f"- {key}: {value}" for key, value in record["machine"].items())
        parts.append(f"# {name}\n\n{facts}\n")
        parts += [section.text() for made in sections(record).values() for section in made]
    return "\n".join(parts)


def filled(text, found):
    """The page's text with its blocks made anew."""
    made = {Path(name).stem.partition("-")[2]: sections(record) for name, record in found}

    def block(match):
        begin, which, name, wanted, end = match.groups()
        of_record = made[which or ""][name]
        tables = [table for section in of_record for table in section.tables]
        sentences = "".join(f"- {s}\n" for section in of_record for s in section.sentences)
        parts = [
            sentences if word == "sentences" else tables[int(word.split()[1]) - 1].text()
            for word in wanted.split(", ")
        ]
        return begin + "\n".join(parts) + end

    return BLOCK.sub(block, text)


def main():
    pages = {}
    for name, (title, command, page) in RECORDS.items():
        found, story = records(name), ROOT / "docs" / page
        head = HEAD.format(title=title, name=name, command=command, page=page)
        pages[RESULTS / f"{name}.md"] = results(head, found)
        pages[story] = filled(story.read_text(), found)
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is not what scripts/make_experiments.py makes")
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
