"""Every alert speaks when it should and is silent when it should, by Prometheus' own judge."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest
import yaml
from tests.charts.helm import CHART, Helm
from tests.kubernetes.binaries import promtool

from anabranch.core.errors import Unavailable

TESTS = sorted((Path(__file__).parent / "alerts").glob("*.yaml"))
ENDS_S = 120


@pytest.fixture(scope="session")
def judge() -> str:
    try:
        return promtool()
    except Unavailable as missing:
        pytest.skip(missing.message)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_speak_and_are_silent_as_their_tests_say(path: Path, judge: str) -> None:
    done = _run(judge, "test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_judge_sees_an_alert_that_is_wrong(tmp_path: Path, judge: str) -> None:
    (path, *_) = TESTS
    tests = yaml.safe_load(path.read_text())
    tests["rule_files"] = [str(CHART / "alerts.yaml")]
    tests["tests"][0]["alert_rule_test"][0]["exp_alerts"] = []
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(tests))
    assert _run(judge, "test", "rules", str(wrong)).returncode != 0


def test_every_alert_is_tried_both_ways() -> None:
    rules = yaml.safe_load((CHART / "alerts.yaml").read_text())["groups"]
    tried: Counter[tuple[str, bool]] = Counter()
    for path in TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            for asked in test["alert_rule_test"]:
                tried[asked["alertname"], bool(asked["exp_alerts"])] += 1
    names = [rule["alert"] for group in rules for rule in group["rules"]]
    assert [name for name in names if not (tried[name, True] and tried[name, False])] == []


def test_the_chart_ships_these_rules_with_the_address_of_each_page(
    helm: Helm, tmp_path: Path, judge: str
) -> None:
    told = ("--set", "monitoring.runbooks=https://example.org/runbooks")
    found = helm.template("--values", str(CHART / "ci" / "eks.yaml"), *told)
    (rules,) = [each["spec"] for each in found if each["kind"] == "PrometheusRule"]
    shipped = tmp_path / "rules.yaml"
    shipped.write_text(yaml.safe_dump(rules))
    done = _run(judge, "check", "rules", str(shipped))
    assert done.returncode == 0, done.stdout + done.stderr
    for group in rules["groups"]:
        for rule in group["rules"]:
            page = f"https://example.org/runbooks/{rule['alert']}.md"
            assert rule["annotations"]["runbook_url"] == page


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=ENDS_S)
