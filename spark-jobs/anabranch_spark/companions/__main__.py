"""`python -m anabranch_spark.companions GROUP...`: fetch groups of jars and print their paths."""

import sys

from anabranch.errors import AnabranchError
from anabranch_spark.companions.fetch import find
from anabranch_spark.companions.listing import listed
from anabranch_spark.jobs.progress import say


def main(words: list[str]) -> int:
    groups = words or list(listed().groups)
    try:
        for path in find(groups, say=say):
            print(path)
    except AnabranchError as error:
        say(error.message)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
