"""python -m tests.soak --minutes 30 [--seed 1] [--first 120 --count 1] [--only "queue" ...]"""

from __future__ import annotations

import argparse
import random
import sys

from tests.soak.director import Director
from tests.soak.operations import OPERATIONS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="number of the first operation")
    parser.add_argument("--count", type=int, default=10**9, help="how many operations at most")
    parser.add_argument("--only", nargs="*", default=[], choices=list(OPERATIONS), metavar="NAME", help="only these")
    options = parser.parse_args()
    print(f"soak of {options.minutes:g} minutes, seed {options.seed}", flush=True)
    director = Director(
        options.seed, 60 * options.minutes, first=options.first, count=options.count, names=options.only
    )
    report = director.run()
    print(f"\n{report.text()}", flush=True)
    sys.exit(bool(report.findings))


if __name__ == "__main__":
    main()
