"""Sealed files in a bucket of S3, or of whatever speaks as S3 does. Chosen by `HANDRAIL_S3_BUCKET`; needs `handrail[s3]`."""

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

_READ = 1024 * 1024


class Bucket(S3Storage):
    """As django-storages has it, and a file can be read from a place on without the rest."""

    def from_there(self, name: str, start: int) -> Iterator[bytes]:
        """FileNotFoundError if there is none of this name."""
        try:
            got: dict[str, Any] = self.bucket.Object(self._normalize_name(clean_name(name))).get(Range=f"bytes={start}-")
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 416:  # it was cut before that
                return
            raise FileNotFoundError(name) from error
        body = got["Body"]
        try:
            yield from body.iter_chunks(_READ)
        finally:
            body.close()
