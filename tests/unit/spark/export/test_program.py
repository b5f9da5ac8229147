"""A session that lacks what a table needs is refused before anything is written."""

from typing import Any

import pytest
from py4j.java_gateway import JavaClass  # pyright: ignore[reportMissingTypeStubs]

from anabranch.errors import BadRequest
from anabranch_spark.export.program import check_session
from anabranch_spark.export.request import Form, Request


class Package:
    """Of a JVM: it has packages of every name, and classes where there are jars."""

    def __init__(self, *, jars: bool) -> None:
        self._jars = jars

    def __getattr__(self, name: str) -> Any:
        if self._jars and name[0].isupper():
            return object.__new__(JavaClass)
        return Package(jars=self._jars)


class Session:
    def __init__(self, *, jars: bool, **settings: str) -> None:
        self.conf = self
        self._jvm = Package(jars=jars)
        self._settings = settings

    def get(self, name: str, default: str) -> str:
        return self._settings.get(name.rpartition(".")[2], default)


def check(session: Any, form: Form, target: str = "lake.shop.orders") -> None:
    request = Request(service="anabranch://nowhere", log="orders", form=form, target=target)
    check_session(session, request)


@pytest.mark.parametrize("form", [Form.ICEBERG, Form.DELTA])
def test_a_session_without_the_jars_is_refused(form: Form) -> None:
    with pytest.raises(BadRequest, match=f"companions {form}.*--jars"):
        check(Session(jars=False, lake="here"), form)
    check(Session(jars=True, lake="here"), form)
    check(Session(jars=False), Form.PARQUET, "/data/orders")


def test_a_catalog_that_nobody_set_is_named() -> None:
    with pytest.raises(BadRequest, match=r"spark\.sql\.catalog\.lake isn't set"):
        check(Session(jars=True), Form.ICEBERG)
