"""The command line."""

import argparse
import re
import sys

from . import reader, report
from .model import LedgerError, UsageError


def _month(text):
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"not a month: {text!r}")
    return text


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="inventory")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "stock", "report"):
        command = commands.add_parser(name)
        command.add_argument("files", nargs="+", metavar="FILE")
        if name == "report":
            command.add_argument("--month", type=_month)
    return parser.parse_args(argv)


def _show(lines, stream=None):
    for line in lines:
        print(line, file=stream)


def _run(args):
    movements, errors = reader.read_all(args.files)
    if errors:
        _show(errors, None if args.command == "check" else sys.stderr)
        return 1
    if args.command == "check":
        print(f"OK {len(movements)} movements")
    elif args.command == "stock":
        _show(report.stock(movements))
    else:
        _show(report.report(movements, args.month))
    return 0


def main(argv):
    """Runs one command; returns the exit code."""
    try:
        return _run(_arguments(argv))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    except LedgerError as error:
        print(error, file=sys.stderr)
        return 1
