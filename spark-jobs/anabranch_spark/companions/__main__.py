"""`python -m anabranch_spark.companions GROUP...`: fetch groups of jars and print their paths."""

import sys

from anabranch.errors import AnabranchError
from anabranch_spark.companions.fetch import find
from anabranch_spark.companions.listing import listed


def main(words: list[str]) -> int:
    groups = words or list(listed().groups)
    try:
        for path in find(groups, say=_say):
            print(path)
    except AnabranchError as error:
        _say(error.message)
        return 1
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
