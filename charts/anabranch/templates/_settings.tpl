{{/* Settings by the names of docs/reference/pods.md. A change rolls the pods: see their checksums. */}}
{{- define "anabranch.settings" -}}
{{- $found := dict
      "cluster" (include "anabranch.cluster" .)
      "host" "0.0.0.0"
      "metadata" (include "anabranch.members" .)
      "patience_ms" "60000"
      "auth_mode" .Values.auth.mode
      "etcd_endpoints" (include "anabranch.etcd" .)
      "s3_bucket" (.Values.dev.enabled | ternary "anabranch" .Values.s3.bucket)
      "s3_endpoint" (include "anabranch.s3.endpoint" .)
      "s3_prefix" .Values.s3.prefix
      "s3_region" .Values.s3.region
      "s3_path_style" (toString .Values.s3.pathStyle)
      "s3_ca_file" ((and .Values.dev.enabled (ne .Values.tls.mode "off")) | ternary "/var/run/anabranch/peer/ca.crt" "")
      "s3_create_bucket" (.Values.dev.enabled | ternary "true" "")
-}}
{{- /* Of YAML's numbers large ones come as floats, which would be written as 6.7108864e+07. */}}
{{- range $name, $value := .Values.settings }}
{{- $whole := and (kindIs "float64" $value) (eq (toString $value) (toString (floor $value))) }}
{{- $_ := set $found $name (toString ($whole | ternary (int64 $value) $value)) }}
{{- end }}
{{- range $name, $value := $found }}
{{- if $value }}
ANABRANCH_{{ upper $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Where sequencers find etcd, with the files of their `etcdTlsSecret`. */}}
{{- define "anabranch.etcd.settings" -}}
ANABRANCH_ETCD_ENDPOINTS: {{ include "anabranch.etcd" . | quote }}
{{- $dev := and .Values.dev.enabled (include "anabranch.tls" .) }}
{{- if or $dev .Values.etcd.tlsSecret }}
ANABRANCH_ETCD_CA: /var/run/anabranch/etcd/ca.crt
{{- end }}
{{- if or $dev (and .Values.etcd.tlsSecret .Values.etcd.clientCertificate) }}
ANABRANCH_ETCD_CERT: /var/run/anabranch/etcd/tls.crt
ANABRANCH_ETCD_KEY: /var/run/anabranch/etcd/tls.key
{{- end }}
{{- end }}
