"""The bucket as a process finds it at its start: there, ours to use, and as strict as we need it.

Everything here is rare and asks for much: boto3's part. What stands in the way is said as what to
change. Nothing here waits for long: a process that can't reach its bucket should say so.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as Unreachable

from anabranch.core.errors import (
    AccessDenied,
    AnabranchError,
    BadRequest,
    ClockSkewed,
    Unavailable,
)
from anabranch.core.types import Nanoseconds
from anabranch.shell.objects.s3.clients import administrative, content
from anabranch.shell.objects.s3.settings import S3Settings
from anabranch.shell.objects.s3.upload import FAULTS, code_of
from anabranch.shell.telemetry.log import Log

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SKEW_S_MAX = 60
"""Between this machine's clock and the store's."""
ATTEMPTS_MAX = 2
PROBE = "anabranch-check"
"""An object that is written once and refused ever after: so we know that the store refuses."""
LEFTOVERS_DAYS = 2
"""How long parts of an upload that never ended are kept."""

_MISSING = (
    "there is no such bucket: name another with s3_bucket, create it, or start with "
    "s3_create_bucket"
)
_ELSEWHERE = {
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
}
_LOOSE = "it doesn't honour If-None-Match on {what}: a store that overwrites can't be used"
_RULE: Any = {
    "ID": "anabranch-abort-uploads",
    "Status": "Enabled",
    "Filter": {"Prefix": ""},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": LEFTOVERS_DAYS},
}


def open_bucket(settings: S3Settings, log: Log, now: Nanoseconds) -> None:
    """Return if the bucket can be used; else raise what must be changed. Takes a thread."""
    client = administrative(settings, ATTEMPTS_MAX)
    try:
        made = _find(client, settings, now)
        _write_once(client, settings)
        _complete_once(client, settings)
        _sweep(client, settings, log, made=made)
    except FAULTS as error:
        raise refusal(settings, error) from None


def refusal(settings: S3Settings, error: BotoCoreError | ClientError) -> AnabranchError:
    """What the store or the way to it says, as what to change."""
    where, code, said = settings.where, code_of(error), str(error)
    match code:
        case "NoSuchBucket" | "404":
            return BadRequest(where, _MISSING)
        case "InvalidBucketName":
            return BadRequest(where, "that can't be a bucket's name: change s3_bucket")
        case "RequestTimeTooSkewed":
            return ClockSkewed(where, "more than the store allows")
        case "InvalidAccessKeyId" | "XAdminUserNotFound":
            reason = f"the store knows no such key ({code}): check s3_access_key"
            return AccessDenied(where, _who(settings), reason)
        case "SignatureDoesNotMatch":
            reason = f"the secret is not that key's ({code}): check s3_secret_key"
            return AccessDenied(where, _who(settings), reason)
        case _ if code in _ELSEWHERE:
            return BadRequest(f"s3_region = {settings.region}", f"the bucket is elsewhere: {said}")
        case "":
            return _unheard(settings, error)
        case _ if _status(error) in {401, 403}:
            return AccessDenied(where, _who(settings), f"{said} ({code})")
        case _:
            return Unavailable(where, said)


def _unheard(settings: S3Settings, error: BotoCoreError | ClientError) -> AnabranchError:
    if isinstance(error, Unreachable | HTTPClientError):
        reason = f"nobody answers there: check s3_endpoint, and that the store runs ({error})"
        return Unavailable(settings.where, reason)
    return BadRequest(settings.where, str(error))


def _find(client: "S3Client", settings: S3Settings, now: Nanoseconds) -> bool:
    """Is it new? A listing tells more than a HEAD of what is wrong."""
    made = False
    try:
        found = client.list_objects_v2(Bucket=settings.bucket, Prefix=settings.root, MaxKeys=1)
    except ClientError as error:
        if code_of(error) != "NoSuchBucket" or not settings.create_bucket:
            raise
        _create(client, settings)
        found = client.list_objects_v2(Bucket=settings.bucket, Prefix=settings.root, MaxKeys=1)
        made = True
    headers = found["ResponseMetadata"]["HTTPHeaders"]
    _check_clock(settings, headers, now)
    region = headers.get("x-amz-bucket-region", settings.region)
    if region != settings.region:
        raise BadRequest(f"s3_region = {settings.region}", f"{settings.where} is in {region}")
    return made


def _create(client: "S3Client", settings: S3Settings) -> None:
    elsewhere: Any = {"LocationConstraint": settings.region}
    default = settings.region == "us-east-1"  # which must not be named
    told: Any = {} if default else {"CreateBucketConfiguration": elsewhere}
    # Several processes start at once, and all of them may be told to.
    with suppress(client.exceptions.BucketAlreadyOwnedByYou):
        client.create_bucket(Bucket=settings.bucket, **told)


def _check_clock(settings: S3Settings, headers: Mapping[str, str], now: Nanoseconds) -> None:
    """Positions in time and leases are told by this machine's clock."""
    date = headers.get("date")
    if date is None:
        return
    ahead_s = now / 1e9 - parsedate_to_datetime(date).timestamp()
    if abs(ahead_s) > SKEW_S_MAX:
        direction = "ahead" if ahead_s > 0 else "behind"
        raise ClockSkewed(settings.where, f"{abs(ahead_s):,.0f} s ({direction})")


def _write_once(client: "S3Client", settings: S3Settings) -> None:
    key = settings.root + PROBE
    told: Any = {"Bucket": settings.bucket, "Key": key, **content(b"")}
    create = partial(client.put_object, **told, IfNoneMatch="*")
    _refused(create)
    if not _refused(create):
        raise BadRequest(settings.where, _LOOSE.format(what="PUT"))


def _complete_once(client: "S3Client", settings: S3Settings) -> None:
    """The same of an upload in parts; of the probe, so that a refusal is what must come."""
    where: Any = {"Bucket": settings.bucket, "Key": settings.root + PROBE}
    upload: Any = {**where, "UploadId": client.create_multipart_upload(**where)["UploadId"]}
    tag = client.upload_part(**upload, PartNumber=1, **content(b"x"))["ETag"]
    parts: Any = {"Parts": [{"PartNumber": 1, "ETag": tag}]}
    end = partial(client.complete_multipart_upload, **upload, IfNoneMatch="*")
    if not _refused(partial(end, MultipartUpload=parts)):
        raise BadRequest(settings.where, _LOOSE.format(what="CompleteMultipartUpload"))
    with suppress(*FAULTS):
        client.abort_multipart_upload(**upload)


def _refused(create: Callable[[], Any]) -> bool:
    try:
        create()
    except ClientError as error:
        if code_of(error) != "PreconditionFailed":
            raise
        return True
    return False


def _sweep(client: "S3Client", settings: S3Settings, log: Log, *, made: bool) -> None:
    """Uploads that a crash left half done cost storage until a rule of the bucket aborts them.

    Rules that somebody else has written are never touched.
    """
    advice = f"abort incomplete uploads after {LEFTOVERS_DAYS} days by a rule of your own"
    try:
        found = client.get_bucket_lifecycle_configuration(Bucket=settings.bucket)
        if not any("AbortIncompleteMultipartUpload" in rule for rule in found["Rules"]):
            log.info("the bucket keeps what uploads leave behind", advice=advice)
        return
    except ClientError as error:
        missing = code_of(error) == "NoSuchLifecycleConfiguration"
        if not missing or not made:
            log.info("the bucket has no lifecycle of ours", code=code_of(error), advice=advice)
            return
    rules: Any = {"Rules": [_RULE]}
    try:
        client.put_bucket_lifecycle_configuration(
            Bucket=settings.bucket, LifecycleConfiguration=rules
        )
    except ClientError as error:
        log.info("the bucket takes no lifecycle", code=code_of(error), advice=advice)


def _status(error: BotoCoreError | ClientError) -> int:
    if not isinstance(error, ClientError):
        return 0
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)


def _who(settings: S3Settings) -> str:
    return settings.access_key or "the key that was found"
