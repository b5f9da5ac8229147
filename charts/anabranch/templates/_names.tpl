{{/* Names: every object of a release begins with the release's own name. */}}

{{- define "anabranch.version" -}}
{{ .Chart.AppVersion }}
{{- end }}

{{- define "anabranch.cluster" -}}
{{ .Values.cluster | default (printf "%s-%s" .Release.Namespace .Release.Name | trunc 63) }}
{{- end }}

{{/* The labels of one part. (dict "root" $ "part" "metadata") */}}
{{- define "anabranch.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
app.kubernetes.io/version: {{ include "anabranch.version" .root | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: anabranch
{{ include "anabranch.selector" . }}
{{- end }}

{{/* Of them, those that never change, by which a part's pods are found. */}}
{{- define "anabranch.selector" -}}
app.kubernetes.io/name: anabranch
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* (dict "root" $ "image" .Values.images.operator) */}}
{{- define "anabranch.image" -}}
{{- with .root.Values.images.registry }}{{ . }}/{{ end -}}
{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .image.tag | default .root.Chart.AppVersion }}{{ end -}}
{{- end }}

{{- define "anabranch.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Secrets with certificates: given ones, or as the operator and cert-manager call them. */}}
{{- define "anabranch.tls.secret" -}}
{{- $given := "" -}}
{{- if eq .root.Values.tls.mode "provided" }}{{ $given = get .root.Values.tls.secrets .part | default "" }}{{ end -}}
{{ $given | default (printf "%s-%s-tls" .root.Release.Name .part) }}
{{- end }}

{{- define "anabranch.tls" -}}
{{ if ne .Values.tls.mode "off" }}true{{ end }}
{{- end }}

{{/* Secrets with tokens that nobody gave: the operator makes them once, so that every render is the same. */}}
{{- define "anabranch.tokens" -}}
{{- if not .Values.belfast.existingSecret }}
# What clients, sequencers and shards of Belfast logs show.
- name: {{ .Release.Name }}-belfast
  tokens: [ANABRANCH_TOKEN, ANABRANCH_PEER_TOKEN]
{{- end }}
{{- if eq .Values.tls.mode "off" }}
# What brokers show to members, where no certificates do.
- name: {{ .Release.Name }}-peer
  tokens: [ANABRANCH_PEER_TOKEN]
{{- end }}
{{- if .Values.dev.enabled }}
- name: {{ .Release.Name }}-s3
  tokens: [ANABRANCH_S3_SECRET_KEY]
  values: {ANABRANCH_S3_ACCESS_KEY: anabranch}
{{- end }}
{{- end }}

{{- define "anabranch.belfast.secret" -}}
{{ .Values.belfast.existingSecret | default (printf "%s-belfast" .Release.Name) }}
{{- end }}

{{/* The service account of gates whose template names none. */}}
{{- define "anabranch.gates.account" -}}
{{ .Values.gates.serviceAccount | default (printf "%s-gate" .Release.Name) }}
{{- end }}

{{/* Where gates may run, as JSON; empty: nowhere. */}}
{{- define "anabranch.gates.namespaces" -}}
{{- if and .Values.gates.enabled (eq .Values.operator.watch "cluster") -}}
{{ uniq .Values.gates.namespaces | toJson }}
{{- else if .Values.gates.enabled -}}
{{ list .Release.Namespace | toJson }}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{/* Where jobs of Spark may run, as JSON: where the release is, and where gates run. */}}
{{- define "anabranch.spark.namespaces" -}}
{{- if .Values.spark.enabled -}}
{{ concat (list .Release.Namespace) (include "anabranch.gates.namespaces" . | fromJsonArray) | uniq | toJson }}
{{- else -}}
[]
{{- end -}}
{{- end }}

{{- define "anabranch.members" -}}
{{- $root := . -}}
{{- $found := list -}}
{{- range $number := until (int .Values.metadata.replicas) -}}
{{- $found = append $found (printf "%s-metadata-%d.%s-metadata.%s.svc:7430" $root.Release.Name $number $root.Release.Name $root.Release.Namespace) -}}
{{- end -}}
{{ join "," $found }}
{{- end }}

{{/* What the gateway, the operator and the test dial; the token and the authority are files. */}}
{{- define "anabranch.service" -}}
{{- $query := list "token_file=/var/run/anabranch/service/token" -}}
{{- if include "anabranch.tls" . }}{{ $query = append $query "ca=/var/run/anabranch/service/ca.crt" }}{{ end -}}
anabranch{{ if include "anabranch.tls" . }}s{{ end }}://{{ .Release.Name }}.{{ .Release.Namespace }}.svc:7420?{{ join "&" $query }}
{{- end }}

{{/* The same for the sequencers of lazy fronts: the authority is in their certificate's Secret, and a token
that all clients show among their Secrets. */}}
{{- define "anabranch.lazy.service" -}}
{{- $token := ternary "service/token" "secrets/ANABRANCH_TOKEN" (eq .Values.auth.mode "kubernetes") -}}
{{- $query := list (printf "token_file=/var/run/anabranch/%s" $token) -}}
{{- if include "anabranch.tls" . }}{{ $query = append $query "ca=/var/run/anabranch/tls/ca.crt" }}{{ end -}}
anabranch{{ if include "anabranch.tls" . }}s{{ end }}://{{ .Release.Name }}.{{ .Release.Namespace }}.svc:7420?{{ join "&" $query }}
{{- end }}

{{- define "anabranch.etcd" -}}
{{- if .Values.dev.enabled -}}
{{ if include "anabranch.tls" . }}https://{{ end }}{{ .Release.Name }}-etcd.{{ .Release.Namespace }}.svc:2379
{{- else -}}
{{ join "," .Values.etcd.endpoints }}
{{- end -}}
{{- end }}

{{- define "anabranch.s3.endpoint" -}}
{{- if .Values.dev.enabled -}}
http{{ if include "anabranch.tls" . }}s{{ end }}://{{ .Release.Name }}-s3.{{ .Release.Namespace }}.svc:9000
{{- else -}}
{{ .Values.s3.endpoint }}
{{- end -}}
{{- end }}

{{- define "anabranch.s3.secret" -}}
{{ if .Values.dev.enabled }}{{ .Release.Name }}-s3{{ else }}{{ .Values.s3.existingSecret }}{{ end }}
{{- end }}
