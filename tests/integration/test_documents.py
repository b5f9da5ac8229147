"""Every example in the documents is run by some test, or this file says why it isn't."""

import ast
import importlib
import re
import shlex
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest
from tests.documents import Block, blocks
from tests.integration.cli_server import Server

import anabranch
from anabranch.cli.main import CONTEXT, cli
from anabranch.client import erwin_log
from anabranch_spark.analytics.__main__ import command as analytics
from anabranch_spark.audit.__main__ import audit
from anabranch_spark.compact.__main__ import compact
from anabranch_spark.diff.__main__ import diff
from anabranch_spark.export.__main__ import command as export
from anabranch_spark.gate.__main__ import command as gate

RUN = {
    "README.md": "tests/integration/test_readme.py",
    "docs/howto/belfast.md": "tests/integration/belfast/test_belfast_documents.py",
    "docs/howto/cluster.md": "tests/integration/cluster/test_cluster_page.py",
    "docs/howto/command-line.md": "tests/integration/test_cli_tutorial.py",
    "docs/howto/curl.md": "tests/integration/http/test_http_curl.py",
    "docs/howto/erwin.md": "tests/integration/test_readme.py",
    "docs/howto/exactly-once.md": "tests/integration/test_writers.py",
    "docs/howto/forks.md": "tests/integration/test_cli_tutorial.py",
    "docs/howto/lazy.md": "tests/integration/test_readme.py",
    "docs/howto/operate.md": "tests/integration/test_operate.py",
    "docs/howto/python-client.md": "tests/integration/test_client.py",
    "docs/howto/scans.md": "tests/integration/test_compaction.py",
    "docs/howto/spark-analytics.md": "tests/spark/test_spark_documents.py",
    "docs/howto/spark-audit.md": "tests/spark/test_spark_documents.py",
    "docs/howto/spark-compact.md": "tests/spark/test_compact.py",
    "docs/howto/spark-export.md": "tests/spark/test_export_page.py",
    "docs/howto/spark-gate.md": "tests/spark/test_gate_page.py",
    "docs/howto/spark-write.md": "tests/spark/test_sink.py",
    "docs/howto/spark.md": "tests/spark/test_page.py",
    "docs/howto/speculate.md": "tests/integration/test_belfast_client.py",
    "docs/reference/client.md": "tests/integration/test_documents.py",
    "docs/tutorial/first-fork.md": "tests/integration/test_cli_tutorial.py",
}
"""Who runs a page's examples; but for the blocks below."""

_PROCESSES = "processes that need etcd and a bucket: tests/integration/cluster starts them"
_LOCAL = "it runs until Ctrl-C: tests/integration/processes and belfast start the same"
_KUBERNETES = "it needs a Kubernetes cluster: tests/cluster and tests/operator have one"

EXCUSED = {
    ("README.md", "make demo"): "tests/integration/test_cli_demo.py plays it",
    ("README.md", "make up"): _LOCAL,
    ("README.md", "make cluster-local"): _LOCAL,
    ("README.md", ".venv/bin/anabranch up"): "tests/integration/belfast/test_belfast_documents.py",
    ("README.md", "helm install"): _KUBERNETES,
    ("charts/", ""): _KUBERNETES,
    ("docs/howto/belfast.md", "anabranch up"): _LOCAL,
    (
        "docs/howto/belfast.md",
        ".venv/bin/python -m examples",
    ): "test_belfast_examples.py plays all three",
    ("docs/howto/belfast.md", "anabranch sequencer"): "several machines",
    ("docs/howto/cluster.md", "make cluster-local"): _LOCAL,
    ("docs/howto/cluster.md", "export ANABRANCH_URL"): _PROCESSES,
    ("docs/howto/cluster.md", "anabranch metadata"): _PROCESSES,
    ("docs/howto/curl.md", "anabranch up"): _LOCAL,
    (
        "docs/howto/erwin.md",
        ".venv/bin/python -m examples",
    ): "tests/integration/test_erwin_examples.py",
    ("docs/howto/erwin.md", "anabranch up --processes"): "tests/integration/erwin/",
    ("docs/howto/erwin.md", "anabranch sequencer"): "several machines",
    ("docs/howto/kubernetes.md", ""): _KUBERNETES,
    ("docs/howto/operate.md", "apt install"): "it changes the machine, as root",
    ("docs/howto/operate.md", "useradd"): "it changes the machine, as root",
    ("docs/howto/scans.md", "anabranch plans"): "tests/integration/test_compaction.py",
    ("docs/howto/spark-kubernetes.md", ""): _KUBERNETES,
    ("docs/explanation/operator.md", "kubectl apply ──>"): "a drawing",
    ("docs/runbooks/", ""): "a failing cluster: tests/charts/test_alerts.py checks their words",
}


def excuse(block: Block) -> str | None:
    first = block.commands[0] if block.commands else ""
    for (page, words), reason in EXCUSED.items():
        if block.page.startswith(page) and first.startswith(words):
            return reason
    return None


@pytest.fixture(scope="module")
def examples(root: Path) -> list[Block]:
    return [each for each in blocks(root) if each.commands or each.language == "python"]


def test_every_example_is_run_or_excused(examples: list[Block], root: Path) -> None:
    assert [str(each) for each in examples if each.page not in RUN and excuse(each) is None] == []
    for page, test in RUN.items():
        assert Path(page).name in (root / test).read_text(), f"{test} runs {page}"


def test_no_excuse_is_left_over(examples: list[Block]) -> None:
    unused = {*EXCUSED}
    for block in examples:
        first = block.commands[0] if block.commands else ""
        unused -= {
            (page, w) for page, w in unused if block.page.startswith(page) and first.startswith(w)
        }
    assert unused == set()


def test_code_stands_between_fences(root: Path) -> None:
    """What is merely indented isn't found by these tests."""
    for page in {each.page for each in blocks(root)}:
        indented = re.findall(r"\n\n {4}(\S[^\n]*)", (root / page).read_text())
        assert [line for line in indented if _is_python(line)] == [], page


def _is_python(line: str) -> bool:
    return bool(re.match(r"(import|from|async|await|with|for|while)\b|\w+ = ", line))


def test_programs_compile_and_what_they_import_is_there(examples: list[Block]) -> None:
    programs = [each for each in examples if each.language == "python"]
    assert len(programs) >= 10
    for block in programs:
        tree = ast.parse(block.text, str(block))
        compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        imports = [each for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), str(block), "exec"), {})  # type: ignore[arg-type]


DOTTED = re.compile(r"`(anabranch(?:\.[A-Za-z_]\w*)+)")
IMPORTED = re.compile(r"`(from anabranch[\w.]* import [\w, ]+|import anabranch[\w.]*)`")


def test_names_and_imports_within_the_text_are_there(root: Path) -> None:
    found: set[str] = set()
    for page in root.glob("docs/**/*.md"):
        text = page.read_text()
        found |= {name for name in DOTTED.findall(text) if not name.startswith("anabranch.dev")}
        for line in IMPORTED.findall(text):
            exec(line, {})
    assert {"anabranch.errors", "anabranch.client.bolt.session.Session"} <= found
    missing = [name for name in sorted(found) if not _resolves(name)]
    assert missing == []


def _resolves(dotted: str) -> bool:
    parts = dotted.split(".")
    for split in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:split]))
        except ImportError:
            continue
        for name in parts[split:]:
            if not hasattr(thing, name):
                return False
            thing = getattr(thing, name)
        return True
    return False


def test_the_names_that_the_client_reference_lists_are_there(root: Path) -> None:
    page = (root / "docs" / "reference" / "client.md").read_text()
    for kind in ("Service", "Log", "Cursor"):
        (cells,) = re.findall(rf"^\| `{kind}` \| (.*) \|$", page, re.MULTILINE)[:1]
        listed = re.findall(r"`([a-z_ ]+)`", cells)
        for name in " ".join(listed).split():
            assert hasattr(getattr(anabranch, kind), name), f"{kind}.{name}"
            assert hasattr(getattr(anabranch.aio, kind), name), f"aio.{kind}.{name}"
    (cell,) = re.findall(r"^\| `AnyLog` \| (.*) \|$", page, re.MULTILINE)
    for name in " ".join(re.findall(r"`([a-z_ ]+)`", cell)).split():
        assert hasattr(anabranch.Log, name), f"AnyLog.{name}"
        assert hasattr(anabranch.SpeculativeLog, name), f"AnyLog.{name}"
    (cell,) = re.findall(r"^\| `ErwinLog` \| (.*) \|$", page, re.MULTILINE)
    for name in " ".join(re.findall(r"`([a-z_ ]+)`", cell)).split():
        assert hasattr(anabranch.ErwinLog, name), f"ErwinLog.{name}"
        assert hasattr(erwin_log.ErwinLog, name), f"aio's ErwinLog.{name}"
    section = page.partition("## Belfast")[2]
    (cell,) = re.findall(r"^\| `Log` \| (.*) \|$", section, re.MULTILINE)
    for name in " ".join(re.findall(r"`([a-z_ ]+)`", cell)).split():
        assert hasattr(anabranch.belfast.Log, name), f"belfast.Log.{name}"
        assert hasattr(anabranch.belfast.aio.Log, name), f"belfast.aio.Log.{name}"


def test_the_programs_of_the_client_reference_run(root: Path, tmp_path: Path) -> None:
    page = (root / "docs" / "reference" / "client.md").read_text()
    repeated, timed = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    with Server.started(tmp_path) as server, anabranch.connect(server.url) as service:
        log = service.create("invoices")
        for _ in range(2):
            exec(repeated, {"anabranch": anabranch, "log": log, "number": 7, "invoice": b"7"})
        assert [record.value for record in log.read(0)] == [b"7"]
    exec(timed, {})


def test_commands_within_the_text_exist_with_their_flags(root: Path) -> None:
    wrong: list[str] = []
    for page in [root / "README.md", root / "CONTRIBUTING.md", *root.glob("docs/*/*.md")]:
        # Formats show first lines of files, which begin alike.
        if page.parent.name != "decisions" and "format" not in page.name:
            shown = re.findall(r"`(anabranch [a-z]+(?: [^`]*)?)`", page.read_text())
            wrong += [f"{page.name}: {says}" for each in shown if (says := _unknown(each))]
    assert wrong == []


def test_commands_that_are_shown_exist_with_their_flags(root: Path) -> None:
    shown = [
        (block, command)
        for block in blocks(root)
        for command in block.commands
        if re.match(r"(\.venv/bin/)?anabranch ", command)
    ]
    assert len(shown) > 80
    wrong = [f"{block}: {says}" for block, each in shown if (says := _unknown(each))]
    assert wrong == []


def _unknown(command: str) -> str:
    """What of it the command line doesn't know; values needn't be ones that it would take."""
    words = _words(command)
    found: click.Command = cli
    while isinstance(found, click.Group):
        context = click.Context(found, **CONTEXT)
        bare = not words or words[0].startswith("-")
        following = found.get_command(context, "list" if bare else words[0])
        if following is None:
            return "" if bare or words[0] == "..." else f"{command}: there is no {words[0]}"
        found, words = following, words if bare else words[1:]
    try:
        with suppress(click.BadOptionUsage):  # of one that is named without its value
            found.make_parser(click.Context(found, **CONTEXT)).parse_args(words)
    except click.NoSuchOption as error:
        return f"{command}: {error.format_message()}"
    return ""


def _words(command: str) -> list[str]:
    """Up to whatever the shell does with its output."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word and set(word) <= set("|;&<>"):
            break
        words.append(word)
    return words[1:]


FOREIGN = {
    "--audience": "kubectl",
    "--delete": "rsync",
    "--field-selector": "kubectl",
    "--quota-backend-bytes": "etcd",
    "--recursive": "kubectl",
    "--type": "kubectl",
    "--wait": "helm",
}
"""Flags of other programs."""


def test_flags_that_the_text_names_exist(root: Path) -> None:
    jobs = (analytics, audit, compact, diff, export, gate)
    known = {*_flags(cli), *(flag for job in jobs for flag in _flags(job)), *FOREIGN}
    missing: set[str] = set()
    for page in [root / "README.md", *root.glob("docs/*/*.md")]:
        if page.parent.name != "decisions":
            text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
            named = set(re.findall(r"`(?:[^`\n]* )?(--[a-z][a-z-]+)", text))
            missing |= {f"{page.name}: {flag}" for flag in named - known}
    assert missing == set()


def _flags(command: click.Command) -> set[str]:
    context = click.Context(command, **CONTEXT)
    found = {
        each
        for option in command.get_params(context)
        for each in (*option.opts, *option.secondary_opts)
    }
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found |= _flags(inner)
    return found


def test_settings_files_can_be_read(root: Path) -> None:
    files = [each for each in blocks(root) if each.language == "toml"]
    assert len(files) >= 5
    for file in files:
        tomllib.loads(file.text)


def test_verbs_of_make_that_are_shown_exist(root: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+)%?:", (root / "Makefile").read_text(), re.MULTILINE))
    for block in blocks(root):
        for command in block.commands:
            if command.startswith("make "):
                assert command.split()[1] in verbs, str(block)
