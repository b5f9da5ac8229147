"""What the server says of itself."""

from fastapi import APIRouter, Request, Response

from anabranch.apps.http.calls import Ask, front
from anabranch.apps.http.models import Broker, Brokers, Counts, Health, Welcome
from anabranch.apps.http.problems import ANY
from anabranch.core.bolt.protocol.commands import Description
from anabranch.core.bolt.protocol.messages import Describe, ListBrokers, Survey
from anabranch.core.bolt.protocol.queries import Census, Pool
from anabranch.core.errors import AnabranchError, NotReady, Unavailable, UnknownLog
from anabranch.core.types import NOWHERE
from anabranch.shell.telemetry.metrics import CONTENT_TYPE

router = APIRouter(tags=["system"])

_READY = ANY | NotReady("log ticks: it is starting")
_LINKS = {
    "description": "/openapi.json",
    "logs": "/v1/logs",
    "counts": "/v1/census",
    "brokers": "/v1/brokers",
    "alive": "/healthz",
    "ready": "/readyz",
    "metrics": "/metrics",
}


@router.get("/", summary="What this is, and where to go on", responses=ANY.documented)
async def welcome(request: Request) -> Welcome:
    backend = front(request).backend
    return Welcome(cluster=backend.cluster, version=backend.version, links=_LINKS)


@router.get("/v1/census", summary="Count everything", responses=ANY.documented)
async def count_everything(ask: Ask) -> Counts:
    return Counts.of(await ask.call(Survey(), Census, "survey"))


@router.get("/v1/brokers", summary="List the brokers of the pool", responses=ANY.documented)
async def list_brokers(ask: Ask) -> Brokers:
    pool = await ask.call(ListBrokers(), Pool, "list brokers")
    return Brokers(brokers=[Broker.of(each) for each in pool.brokers])


@router.get("/healthz", summary="Does the process live?", responses=ANY.documented)
async def alive(request: Request) -> Health:
    front(request).backend.check_alive()
    return Health(status="ok")


@router.get("/readyz", summary="Does the log answer?", responses=_READY.documented)
async def ready(ask: Ask) -> Health:
    """Broker and metadata both have a part in finding that there is no such log."""
    ask.front.backend.check_ready()
    try:
        await ask.call(Describe(NOWHERE), Description, "ask whether the log is ready")
    except UnknownLog:
        return Health(status="ok")
    except AnabranchError as error:
        raise Unavailable("the log", error.message) from None
    raise AssertionError("no log has this id")


@router.get(
    "/metrics",
    response_class=Response,
    summary="What the process counts, for Prometheus",
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **ANY.documented,
    },
)
async def metrics(request: Request) -> Response:
    return Response(front(request).metrics(), media_type=CONTENT_TYPE)
