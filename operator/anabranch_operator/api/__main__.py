"""Writes what is made of the structs: `python -m anabranch_operator.api`.

CRDs for `kubectl apply`, the same as a chart, the admission policies of the other chart, and the
page that tells of them.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from anabranch_operator.api.admission import policies
from anabranch_operator.api.generate import pages
from anabranch_operator.api.generate.crd import KINDS, crd

_WRITTEN = (
    "# Written by `python -m anabranch_operator.api` from operator/anabranch_operator/api/.\n"
)
_PREFIX, _NAMESPACES, _ACCOUNT = "RELEASE", "NAMESPACES", "GATE_ACCOUNT"
_OPERATOR = "OPERATOR_USER"
"""What Helm puts in: the words that stand for it until then."""

_CRD_TEXTS = """\
  annotations:
    helm.sh/resource-policy: keep
    {{- with .Values.annotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- with .Values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
"""

_SELECTOR = """\
matchResources:
    namespaceSelector:
      {{- if eq .Values.operator.watch "cluster" }}
      {}
      {{- else }}
      matchLabels:
        kubernetes.io/metadata.name: {{ .Release.Namespace }}
      {{- end }}
"""

_NAMED = """\
  name: {{{{ .Release.Namespace }}}}-{{{{ .Release.Name }}}}-{name}
  labels:
    {{{{- include "anabranch.labels" (dict "root" $ "part" "admission") | nindent 4 }}}}
"""


class _Plain(yaml.SafeDumper):
    """What stands in two places is written twice: no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def written() -> dict[Path, str]:
    """Every file, relative to the repository, with what it should hold."""
    files = {Path("docs/reference/resources.md"): pages.page()}
    for kind in KINDS:
        text = _yaml([crd(kind)])
        files[Path("crds", f"{kind.plural}.yaml")] = _WRITTEN + text
        files[Path("charts/anabranch-crds/templates", f"{kind.plural}.yaml")] = _chart(text)
    files[Path("charts/anabranch/templates/admission.yaml")] = _admission()
    return files


def _yaml(documents: Iterable[dict[str, Any]]) -> str:
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, width=100, allow_unicode=True)


def _chart(text: str) -> str:
    """With what Helm adds, above the labels that are always there."""
    before, found, after = text.partition("  labels:\n")
    assert found
    return _WRITTEN + before + _CRD_TEXTS + after


def _admission() -> str:
    """The policies, for the namespaces that a release's operator watches."""
    selector = {_NAMESPACES: ""}
    found = policies(_ACCOUNT, _OPERATOR)
    documents = [each for policy in found for each in policy.written(_PREFIX, selector)]
    text = _yaml(documents)
    for policy in found:
        text = text.replace(f"  name: {_PREFIX}-{policy.name}\n", _NAMED.format(name=policy.name))
    text = text.replace(f"{_PREFIX}-", "{{ .Release.Namespace }}-{{ .Release.Name }}-")
    text = text.replace(_ACCOUNT, '{{ include "anabranch.gates.account" . }}')
    text = text.replace(
        _OPERATOR,
        "system:serviceaccount:{{ .Release.Namespace }}:{{ .Release.Name }}-operator",
    )
    text = text.replace(
        f"matchResources:\n    namespaceSelector:\n      {_NAMESPACES}: ''\n", _SELECTOR
    )
    assert _NAMESPACES not in text
    return "{{- if .Values.admission.enabled }}\n" + _WRITTEN + text + "{{- end }}\n"


def main() -> None:
    for path, text in written().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
