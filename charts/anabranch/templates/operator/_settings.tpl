{{/* What the operator is told, as its settings file. */}}
{{- define "anabranch.operator.settings" -}}
release = {{ .Release.Name | quote }}
namespace = {{ .Release.Namespace | quote }}
watch = {{ .Values.operator.watch | quote }}
service = {{ include "anabranch.service" . | quote }}
{{- if eq .Values.belfast.auth "kubernetes" }}
belfast_token_file = "/var/run/anabranch/service/token"
{{- else }}
belfast_token_file = "/var/run/anabranch/belfast/token"
{{- end }}
{{- if include "anabranch.tls" . }}
belfast_ca = "/var/run/anabranch/service/ca.crt"
{{- end }}
watch_nodes = {{ or (eq .Values.operator.watch "cluster") .Values.eviction.enabled }}
{{- if .Values.eviction.enabled }}
eviction_s = {{ int .Values.eviction.deadlineSeconds }}
{{- if .Values.eviction.clientCaSecret }}
webhook_client_ca = "/var/run/anabranch/callers/ca.crt"
{{- end }}
{{- else }}
webhook_port = -1
{{- end }}

[gates]
enabled = {{ .Values.gates.enabled }}
service_account = {{ include "anabranch.gates.account" . | quote }}
{{- $spark := .Values.spark.enabled | ternary (list (printf "%s-spark" .Release.Name)) list }}
service_accounts = {{ concat .Values.gates.serviceAccounts $spark | uniq | toJson }}
api_accounts = {{ concat .Values.gates.apiAccounts $spark | uniq | toJson }}
secrets = {{ toJson .Values.gates.secrets }}
volumes = {{ toJson .Values.gates.volumes }}
priority_classes = {{ toJson .Values.gates.priorityClasses }}
pod_security = {{ .Values.gates.podSecurity | quote }}
logs = {{ .Values.gates.logs }}
{{- $root := . }}
{{- range include "anabranch.tokens" . | fromYamlArray }}

[[tokens]]
name = {{ .name | quote }}
tokens = {{ toJson .tokens }}
{{- with .values }}
values = { {{ range $key, $value := . }}{{ $key }} = {{ $value | quote }}{{ end }} }
{{- end }}
{{- end }}

[certificates]
mode = {{ .Values.tls.mode | quote }}
{{- if include "anabranch.tls" . }}
authority = {{ printf "%s-ca" .Release.Name | quote }}
bundle = {{ printf "%s-ca" .Release.Name | quote }}
{{- if .Values.eviction.enabled }}
webhook = {{ include "anabranch.webhook" . | quote }}
{{- end }}
{{- range $part, $names := include "anabranch.leaves" . | fromYaml }}

[[certificates.leaves]]
secret = {{ include "anabranch.tls.secret" (dict "root" $root "part" $part) | quote }}
names = {{ toJson $names }}
{{- end }}
{{- end }}
{{- end }}

{{/* Of all namespaces, so it bears the release's. */}}
{{- define "anabranch.webhook" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}-eviction
{{- end }}
