"""The folder of an export as Hadoop sees it: on a disk, in a bucket, wherever Spark can write."""

from typing import TYPE_CHECKING, Any, cast

from anabranch.errors import BadRequest, Unavailable
from anabranch_spark.spark_failures import SPARK_FAILURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopFolder:
    """A `progress.Folder`, on what Spark itself writes to."""

    def __init__(self, spark: "SparkSession", path: str) -> None:
        self.path = path.rstrip("/")
        self._gateway = cast(Any, spark.sparkContext)._gateway
        self._jvm = self._gateway.jvm
        self._conf = cast(Any, spark.sparkContext)._jsc.hadoopConfiguration()
        try:
            self._fs = self._at("").getFileSystem(self._conf)
        except SPARK_FAILURES as error:
            raise BadRequest(f"export to {path}", _said(error)) from None

    def names(self) -> list[str]:
        if not self._fs.exists(self._at("")):
            return []
        return [each.getPath().getName() for each in self._fs.listStatus(self._at(""))]

    def below(self, path: str) -> list[str]:
        """Files of a folder in this folder, as paths relative to this folder."""
        return [
            f"{path}/{each.getPath().getName()}" for each in self._fs.listStatus(self._at(path))
        ]

    def read(self, name: str) -> bytes:
        stream = self._fs.open(self._at(name))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def replace(self, name: str, content: bytes) -> None:
        whole, part = self._at(name), self._at(f"{name}.part")
        # A bucket shows an object when it is complete; elsewhere a rename takes its place.
        to = whole if self._fs.getScheme() == "s3a" else part
        stream = self._fs.create(to, True)
        stream.write(bytearray(content))
        stream.close()
        if to is part:
            options = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
            how = self._gateway.new_array(options, 1)
            how[0] = options.OVERWRITE
            context = self._jvm.org.apache.hadoop.fs.FileContext
            context.getFileContext(self._fs.getUri(), self._conf).rename(part, whole, how)

    def publish(self, staged: str, name: str) -> None:
        if self._fs.exists(self._at(name)):
            raise BadRequest(f"export to {self.path}", f"{name} is there already")
        if not self._fs.rename(self._at(staged), self._at(name)):
            raise Unavailable(f"the folder {self.path}", f"{staged} can't be renamed to {name}")

    def delete(self, path: str) -> None:
        """A file or folder, with everything in it; nothing if it isn't there."""
        self._fs.delete(self._at(path), True)

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}" if name else self.path)


def _said(error: Any) -> str:
    return str(error.java_exception.getMessage())
