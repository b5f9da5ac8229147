{{/* Which files a member finds its certificates in. */}}
{{- define "anabranch.metadata.files" -}}
{{- $found := dict -}}
{{- if include "anabranch.tls" . -}}
{{- $peer := "/var/run/anabranch/peer" -}}
{{- $_ := set $found "PEER_TLS_CERT" (printf "%s/tls.crt" $peer) -}}
{{- $_ := set $found "PEER_TLS_KEY" (printf "%s/tls.key" $peer) -}}
{{- $_ := set $found "PEER_TLS_CA" (printf "%s/ca.crt" $peer) -}}
{{- if .Values.dev.enabled -}}
{{- $_ := set $found "ETCD_CA" (printf "%s/ca.crt" $peer) -}}
{{- $_ := set $found "ETCD_CERT" (printf "%s/tls.crt" $peer) -}}
{{- $_ := set $found "ETCD_KEY" (printf "%s/tls.key" $peer) -}}
{{- end -}}
{{- end -}}
{{- if .Values.etcd.tlsSecret -}}
{{- $_ := set $found "ETCD_CA" "/var/run/anabranch/etcd/ca.crt" -}}
{{- if .Values.etcd.clientCertificate -}}
{{- $_ := set $found "ETCD_CERT" "/var/run/anabranch/etcd/tls.crt" -}}
{{- $_ := set $found "ETCD_KEY" "/var/run/anabranch/etcd/tls.key" -}}
{{- end -}}
{{- end -}}
{{- range $name, $file := $found }}
- name: ANABRANCH_{{ $name }}
  value: {{ $file }}
{{- end }}
{{- if eq .Values.tls.mode "off" }}
# Tokens are read anew when they change.
- name: ANABRANCH_SECRETS
  value: /var/run/anabranch/secrets
{{- end }}
{{- if include "anabranch.tls" . }}
# An authority may have signed for others too: a broker is taken only by its own name.
- name: ANABRANCH_PEER_NAMES
  value: "{name}.{{ .Release.Name }}-brokers.{{ .Release.Namespace }}.svc"
{{- end }}
{{- end }}

{{/* Secrets as environment. (dict "root" $ "etcd" true) */}}
{{- define "anabranch.secrets" -}}
{{- $found := list (include "anabranch.s3.secret" .root) -}}
{{- if eq .root.Values.tls.mode "off" }}{{ $found = append $found (printf "%s-peer" .root.Release.Name) }}{{ end -}}
{{- if and .etcd (not .root.Values.dev.enabled) }}{{ $found = append $found .root.Values.etcd.existingSecret }}{{ end -}}
{{- range compact $found }}
- secretRef:
    name: {{ . }}
{{- end }}
{{- end }}
