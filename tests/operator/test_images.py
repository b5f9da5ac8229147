"""The images are called alike by whoever builds them, by the chart and by skaffold."""

import re
from pathlib import Path

import yaml
from tests.kubernetes.image import images

OURS = tuple(image for image in images() if image.reference.startswith("anabranch/"))


def test_the_chart_asks_for_what_is_built(root: Path) -> None:
    chart = yaml.safe_load((root / "charts/anabranch/Chart.yaml").read_text())
    values = yaml.safe_load((root / "charts/anabranch/values.yaml").read_text())
    asked = {
        f"{each['repository']}:{each['tag'] or chart['appVersion']}"
        for each in values["images"].values()
        if isinstance(each, dict)
    }
    assert asked == {image.reference for image in OURS}


def test_skaffold_builds_them_all_by_targets_that_there_are(root: Path) -> None:
    told = yaml.safe_load((root / "skaffold.yaml").read_text())
    built = {each["image"]: each["docker"]["target"] for each in told["build"]["artifacts"]}
    assert set(built) == {image.reference.partition(":")[0] for image in OURS}
    stages = set(re.findall(r"(?m)^FROM .* AS (\S+)$", (root / "Dockerfile").read_text()))
    assert set(built.values()) <= stages


def test_every_image_has_an_archive_of_its_own() -> None:
    assert len({image.archive for image in images()}) == len(images())
