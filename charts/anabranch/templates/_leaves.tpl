{{/* Each certificate's names, by part: what its holders are dialed by. */}}
{{- define "anabranch.leaves" -}}
{{- $in := printf "%s.svc" .Release.Namespace -}}
peer:
  - "*.{{ .Release.Name }}-metadata.{{ $in }}"
  # Members take a broker only by its own name: see `peer_names`.
  - "*.{{ .Release.Name }}-brokers.{{ $in }}"
broker:
  - "*.{{ .Release.Name }}-brokers.{{ $in }}"
  - "{{ .Release.Name }}.{{ $in }}"
  # Of the Services of logs and forks, which the operator makes beside them.
  - "*.{{ $in }}"
  # Of sequencers and shards, whose Services the operator makes: it adds them to its own by itself.
  {{- if eq .Values.tls.mode "certManager" }}
  {{- range .Values.tls.certManager.brokerNames }}
  - {{ . | quote }}
  {{- end }}
  {{- end }}
operator:
  - "{{ .Release.Name }}-operator.{{ $in }}"
{{- if .Values.gateway.enabled }}
gateway:
  - "{{ .Release.Name }}-gateway.{{ $in }}"
  - "localhost"
{{- end }}
{{- if .Values.dev.enabled }}
etcd:
  - "{{ .Release.Name }}-etcd.{{ $in }}"
s3:
  - "{{ .Release.Name }}-s3.{{ $in }}"
{{- end }}
{{- end }}
