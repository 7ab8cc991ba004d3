"""Prints the pip requirements of the named groups and extras of pyproject.toml, one a line.

`project` names the package's own dependencies.
"""

import pathlib
import sys
import tomllib


def requirements(names: list[str]) -> list[str]:
    root = pathlib.Path(__file__).resolve().parent.parent
    data = tomllib.loads((root / "pyproject.toml").read_text())
    table = {
        "project": data["project"]["dependencies"],
        **data["project"]["optional-dependencies"],
        **data["dependency-groups"],
    }
    return [line for name in names for line in table[name]]


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
