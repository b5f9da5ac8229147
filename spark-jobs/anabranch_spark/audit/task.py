"""What Spark runs of an audit: a share comes as bytes, what was found goes back as bytes."""

import anabranch
from anabranch.errors import AnabranchError
from anabranch_spark.audit.reading import Reader
from anabranch_spark.audit.shares import Answer, Found, Share, packed, unpacked_share
from anabranch_spark.audit.tally import of_obstacle
from anabranch_spark.service import connect
from anabranch_spark.source.fetch import Fetcher


def read_share(content: bytes | bytearray) -> bytes:
    """A function of Spark's SQL: an answer for a share."""
    return packed(answered(unpacked_share(bytes(content))))


def answered(share: Share) -> Answer:
    """Read a share. What stands in the way is an answer, too: other tasks go on."""
    try:
        with connect(share.service) as service, Fetcher() as fetcher:
            return Answer(_found(share, service, fetcher))
    except (AnabranchError, OSError) as error:
        tally = of_obstacle(f"a task couldn't reach the service: {error}")
        return Answer([Found(piece.log, tally, []) for piece in share.pieces])


def _found(share: Share, service: anabranch.Service, fetcher: Fetcher) -> list[Found]:
    reader = Reader(share.cluster, fetcher)
    return [reader.read(piece, service.scan_plan(piece.plan)) for piece in share.pieces]
