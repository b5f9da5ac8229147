"""The application: routes, problem documents for whatever goes wrong, and OpenAPI for all of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

from anabranch.apps.http import appends, forks, logs, problems, reads, records, streams, system
from anabranch.apps.http.backend import Backend, Seated
from anabranch.apps.http.context import Front, FrontSettings
from anabranch.apps.http.entry import Door
from anabranch.apps.http.jobs import plans, writers
from anabranch.apps.up import Embedded
from anabranch.core.errors import AnabranchError
from anabranch.ports import Authority
from anabranch.shell.server.budgets import Budgets

_TOLD = """\
A shared log that can be forked.

Every failure is a problem document (RFC 9457) whose `code` is stable. What changes anything takes
an `Idempotency-Key`, which makes it harmless to repeat. Positions and times are numbers below 2^53.
"""
_TAGS = [
    {"name": "records", "description": "Append, read, subscribe."},
    {"name": "logs", "description": "Create, find, compare, delete."},
    {"name": "forks", "description": "Fork, promote, squash, trim, redeem receipts."},
    {"name": "cursors", "description": "Positions that a log keeps for its readers."},
    {"name": "scans", "description": "Where records lie in the object store, and URLs for them."},
    {"name": "writers", "description": "Programs whose marked appends are done once."},
    {"name": "system", "description": "What the server says of itself."},
]
_ROUTERS = (
    appends.router,
    reads.router,
    streams.router,
    logs.router,
    forks.router,
    forks.cursors,
    plans.router,
    writers.router,
    system.router,
)
"""They are tried in this order, which costs: the busiest come first."""
_BEHIND_BYTES = (problems.Problem, records.RecordsIn, records.RecordIn, records.RecordOut)
"""Models that FastAPI can't see, since bodies are read and written by hand there."""


def build(embedded: Embedded, settings: FrontSettings | None = None) -> Door:
    """The ASGI application of a log that runs in this process."""
    return application(Seated(embedded), settings, budgets=embedded.budgets)


def application(
    backend: Backend,
    settings: FrontSettings | None = None,
    authority: Authority | None = None,
    budgets: Budgets | None = None,
) -> Door:
    """The same ASGI application, whatever it stands before. Without an authority, the backend's
    token lets in; without budgets, it shares with nobody.
    """
    front = Front(backend, settings or FrontSettings(), authority, budgets)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncGenerator[None]:
        yield
        front.stopping.set()

    app = FastAPI(
        title="Anabranch",
        version=backend.version,
        description=_TOLD,
        openapi_tags=_TAGS,
        # The pages that show it would load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        lifespan=life,
    )
    app.state.front = front
    for router in _ROUTERS:
        app.include_router(router)
    app.state.routes = [route for router in _ROUTERS for route in router.routes]
    app.add_exception_handler(AnabranchError, problems.refused)
    app.add_exception_handler(RequestValidationError, problems.invalid)
    app.add_exception_handler(HTTPException, problems.unrouted)
    app.add_exception_handler(Exception, partial(problems.failed, backend.log))
    app.openapi = lambda: _openapi(app, with_token=not front.authority.open)
    return Door(app, front)


def _operation_id(route: APIRoute) -> str:
    return route.name


def _openapi(app: FastAPI, *, with_token: bool) -> dict[str, Any]:
    if app.openapi_schema is None:
        described = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            tags=app.openapi_tags,
            routes=app.routes,
        )
        _, definitions = models_json_schema(
            [(model, "validation") for model in _BEHIND_BYTES],
            ref_template="#/components/schemas/{model}",
        )
        components = described.setdefault("components", {})
        components.setdefault("schemas", {}).update(definitions["$defs"])
        if with_token:
            components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
            described["security"] = [{"bearer": []}]
        app.openapi_schema = described
    return app.openapi_schema
