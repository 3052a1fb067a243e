"""The command line."""

import sys

from . import reader, report


def main(argv):
    """Runs one command; returns the exit code."""
    command, files = argv[0], argv[1:]
    movements, errors = reader.read_all(files)
    if command == "check":
        print(f"OK {len(movements)} movements")
    elif command == "stock":
        print("\n".join(report.stock(movements)))
    else:
        print("unknown command", file=sys.stderr)
    return 0
