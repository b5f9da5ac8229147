"""The client and a gateway before real brokers: killed, frozen, told to end."""

import signal

import httpx
from tests.integration.gateways import gateway
from tests.integration.pods.crew import PATIENCE_S, Crew, Pod, start, until

import anabranch

SETTINGS = anabranch.Settings(timeout_ms=round(PATIENCE_S * 1_000), silence_ms=500, client="test")


DEADLINE = {"Deadline-Ms": str(round(PATIENCE_S * 1_000))}


def placed(crew: Crew, address: str) -> Pod:
    return next(pod for pod in crew.brokers if pod.running and pod.address == address)


def test_appends_and_a_subscription_go_on_whatever_becomes_of_a_broker(crew: Crew) -> None:
    crew.start(members=1, brokers=2)
    service_url = "anabranch://" + ",".join(pod.address for pod in crew.brokers)
    with (
        anabranch.connect(service_url, timeout=PATIENCE_S, settings=SETTINGS) as service,
        anabranch.connect(service_url, timeout=PATIENCE_S, settings=SETTINGS) as other,
        gateway(service_url) as front,
        httpx.Client(base_url=f"http://{front.address}", timeout=2 * PATIENCE_S) as http,
    ):
        log = service.create("orders")
        events = other.log("orders").subscribe(0)
        events.take(timeout=0)
        count = 0

        def more() -> None:
            """Several on their way together, and one over HTTP behind them."""
            nonlocal count
            handles = [log.append_nowait(b"%d" % (count + each)) for each in range(20)]
            positions = [handle.result().position for handle in handles]
            assert positions == list(range(count, count + 20))
            body = {"records": [{"value": str(count + 20)}]}
            answer = http.post("/v1/logs/orders/records", json=body, headers=DEADLINE)
            assert answer.status_code == 201, answer.text
            assert answer.json()["position"] == count + 20
            count += 21

        more()
        killed = placed(crew, log.description.address)
        killed.kill()
        more()
        until(lambda: log.describe().address != log.description.address)
        more()
        start([killed])
        until(lambda: all(seat.state == "ready" for seat in service.brokers()))
        http.get("/v1/brokers")
        frozen = placed(crew, log.describe().address)
        frozen.signal(signal.SIGSTOP)
        more()
        frozen.signal(signal.SIGCONT)
        more()
        until(lambda: all(seat.state == "ready" for seat in service.brokers()))
        ended = placed(crew, log.describe().address)
        ended.signal()
        more()
        assert ended.ended() == 0
        more()
        values = [record.value for record in log.read(0)]
        assert values == [b"%d" % number for number in range(count)]
        seen: list[int] = []
        while len(seen) < count:
            for event in events.take():
                assert isinstance(event, anabranch.Deliver)
                seen.append(event.record.position)
        assert seen == list(range(count))
        events.close()
