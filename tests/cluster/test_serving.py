"""Installed, declared, used: by those who may."""

from pathlib import Path

import pytest
from tests.cluster.account import Account
from tests.cluster.load import Load
from tests.cluster.site import RELEASE, Site

EXAMPLES = Path("examples") / "kubernetes"
GREEN_S = 180.0


def test_it_is_green_within_three_minutes(site: Site, account: Account) -> None:
    assert account.steps[0].took_s <= GREEN_S
    assert all(
        not status["restartCount"]
        for pod in site.all("pods")
        for status in pod["status"]["containerStatuses"]
    )


def test_the_charts_own_test_passes(site: Site, account: Account) -> None:
    with account.step("helm test"):
        said = site.helm("test", RELEASE)
    assert "Phase:          Succeeded" in said


def test_what_is_applied_comes_to_be(site: Site, account: Account, load: Load, root: Path) -> None:
    with account.step("kubectl apply of a fork, until it is ready"):
        site.kubectl("apply", "-f", str(root / EXAMPLES / "fork.yaml"))
        found = site.until_is("forks", "what-if", "Ready")
    assert found["status"]["logName"] == "orders--what-if"
    assert found["status"]["endpoint"].startswith(
        f"anabranchs://fork-what-if.{site.namespace}.svc:7420"
    )
    load.goes_on()


def test_a_fork_is_reached_by_its_own_service_with_a_token(site: Site, account: Account) -> None:
    site.account("client", "append", "read")
    with account.step("a program appends to a fork through the fork's Service"):
        script = "anabranch append orders--what-if '7 pears' && anabranch read orders--what-if -n 1"
        done = site.run(script, to="fork-what-if")
    assert done.code == 0, done.said
    assert "load 0" in done.said


def test_who_lacks_the_right_is_told_the_rule(site: Site) -> None:
    site.account("reader", "read")
    script = "anabranch read orders -n 1 && anabranch append orders 'a lie'"
    done = site.run(script, account="reader")
    assert done.code != 0
    assert "load 0" in done.said
    assert "resources [logs], verbs [append]" in done.said
    assert f"system:serviceaccount:{site.namespace}:reader" in done.said


def test_who_shows_no_token_gets_nothing(site: Site) -> None:
    url = f"anabranchs://{RELEASE}.{site.namespace}.svc:7420?ca=/var/run/anabranch/ca.crt"
    done = site.run(f"anabranch read orders -n 1 --url '{url}'")
    assert done.code != 0
    assert "load 0" not in done.said


@pytest.mark.parametrize("account_name", ["client", "stranger"])
def test_the_gateway_lets_in_the_same_people(site: Site, account_name: str) -> None:
    site.account("stranger")
    done = site.run(_over_http(site), account=account_name)
    if account_name == "client":
        assert done.code == 0, done.said
        assert "load 0" in done.said
    else:
        assert done.code != 0
        assert "403" in done.said


def _over_http(site: Site) -> str:
    url = f"https://{RELEASE}-gateway.{site.namespace}.svc:7421/v1/logs/orders/records?limit=1"
    return f"""\
python3 - <<'END'
import ssl, urllib.request
token = open("/var/run/anabranch/token").read()
tls = ssl.create_default_context(cafile="/var/run/anabranch/ca.crt")
asked = urllib.request.Request("{url}", headers={{"Authorization": "Bearer " + token}})
print(urllib.request.urlopen(asked, context=tls).read().decode())
END
"""
