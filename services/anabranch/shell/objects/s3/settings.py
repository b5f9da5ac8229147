"""Where the bucket is, who asks, and how patiently."""

from urllib.parse import urlsplit

import msgspec

from anabranch.core.errors import BadRequest
from anabranch.core.limits import MIB

PUT_BYTES_MAX = 5 << 30
"""What S3 takes in one request."""
PART_BYTES_MIN = 5 * MIB
"""What S3 takes as a part that isn't the last."""
PARTS_MAX = 10_000


class S3Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bucket: str
    """It must be there, unless `create_bucket` is set."""

    endpoint: str | None = None
    """http://host:port or https://...; none means Amazon's own, of the region."""

    region: str = "us-east-1"
    """Of the bucket; servers that have no regions mostly call it so."""

    prefix: str = ""
    """Before every object's name, so that the bucket can hold other things as well."""

    access_key: str | None = None
    """With `secret_key`; without both, what Amazon's tools would find: variables, profile, role."""

    secret_key: str | None = None
    """The half that is never shown."""

    path_style: bool = True
    """The bucket's name in the path; false puts it before the host's name, as some stores want."""

    ca_file: str | None = None
    """Certificates to trust besides the system's, as PEM."""

    sign_payload: bool = False
    """Sign the content too, at twice the cost of a large PUT; it carries a checksum either way."""

    create_bucket: bool = False
    """Create the bucket at start if it isn't there."""

    multipart_bytes_min: int = 64 * MIB
    """An object of this size is uploaded in parts."""

    part_bytes: int = 16 * MIB
    """Each of them but the last."""

    attempt_ms: int = 10_000
    """One request, from connecting to the last byte of its answer."""

    deadline_ms: int = 20_000
    """One call with all its attempts, and with what it waits between them."""

    retry_ms: int = 50
    """At most before the second attempt; doubled before each further one."""

    retry_ms_max: int = 2_000
    """At most between two attempts."""

    trace: bool = False
    """A log line for every call."""

    price_put: float = 0.005
    """Of 1,000 requests that write or list, in whatever currency; Amazon's list price."""

    price_get: float = 0.0004
    """Of 1,000 requests that read."""

    price_out: float = 0.0
    """Of a GiB read; nothing within one region of Amazon's."""

    def __post_init__(self) -> None:
        _require(bool(self.bucket), "bucket", "it is empty: name the bucket")
        pair = (self.access_key is None) == (self.secret_key is None)
        _require(pair, "access_key", "it goes with secret_key: give both, or neither")
        if self.endpoint is not None:
            parts = urlsplit(self.endpoint)
            sound = parts.scheme in {"http", "https"} and parts.hostname and not parts.path
            _require(bool(sound), f"endpoint = {self.endpoint}", "write it as https://host:port")
        _require(not self.prefix.startswith("/"), f"prefix = {self.prefix}", "no / before it")
        _require(self.attempt_ms > 0, f"attempt_ms = {self.attempt_ms}", "it is too small")
        longer = self.deadline_ms >= self.attempt_ms
        _require(longer, f"deadline_ms = {self.deadline_ms}", "it is below attempt_ms")
        backs_off = 0 < self.retry_ms <= self.retry_ms_max
        _require(backs_off, f"retry_ms = {self.retry_ms}", "it must be from 1 to retry_ms_max")
        fits = 0 < self.multipart_bytes_min <= PUT_BYTES_MAX
        _require(fits, f"multipart_bytes_min = {self.multipart_bytes_min}", "from 1 to 5 GiB")
        large = self.part_bytes >= PART_BYTES_MIN
        _require(large, f"part_bytes = {self.part_bytes}", "5 MiB is the least")

    @property
    def where(self) -> str:
        """What errors call it."""
        under = f"/{self.prefix.strip('/')}" if self.prefix else ""
        return f"bucket {self.bucket}{under} at {self.endpoint or f'S3 in {self.region}'}"

    @property
    def root(self) -> str:
        """What stands before a name: the prefix, ended by a slash if there is one."""
        return f"{self.prefix.strip('/')}/" if self.prefix.strip("/") else ""


def _require(holds: bool, what: str, otherwise: str) -> None:
    if not holds:
        raise BadRequest(f"s3: {what}", otherwise)
