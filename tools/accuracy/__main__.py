"""Accuracy of the mathematical functions: `make accuracy`.

python tools/accuracy measure [FUNCTION ...] [--again]   measures what has changed, writes the tables
python tools/accuracy check                              2^22 arguments of each function against the table
python tools/accuracy write                              docs/accuracy.md from the table
"""

import argparse
import sys

import report

try:
    import run
except ImportError as e:
    sys.exit(f"accuracy: {e}")


def main():
    parser = argparse.ArgumentParser(prog="accuracy")
    commands = parser.add_subparsers(dest="command", required=True)
    measure = commands.add_parser("measure")
    measure.add_argument("functions", nargs="*")
    measure.add_argument(
        "--spread",
        type=int,
        metavar="N",
        help="of float32, N * 2^20 evenly spread arguments, not all",
    )
    measure.add_argument("--again", action="store_true", help="measure what has not changed too")
    commands.add_parser("check")
    commands.add_parser("write")
    options = parser.parse_args()
    if options.command == "measure":
        return run.measure(options.functions, options.again, options.spread)
    if options.command == "check":
        return run.check()
    return report.write(report.load())


if __name__ == "__main__":
    sys.exit(main())
