{{/* Values that don't go together, refused before anything is made. */}}

{{- define "anabranch.checks" -}}
{{- $values := .Values -}}
{{- if gt (len .Release.Name) 40 }}
{{- fail "the release's name: at most 40 characters, so that what is called after it has room" }}
{{- end }}
{{- if not $values.dev.enabled }}
{{- if not $values.etcd.endpoints }}
{{- fail "etcd.endpoints: name every member of your etcd, or set dev.enabled=true for a trial" }}
{{- end }}
{{- if not $values.s3.bucket }}
{{- fail "s3.bucket: name your bucket, or set dev.enabled=true for a trial" }}
{{- end }}
{{- else if or $values.etcd.endpoints $values.s3.bucket $values.s3.endpoint }}
{{- fail "dev.enabled brings its own etcd and S3: leave etcd.endpoints, s3.bucket and s3.endpoint out" }}
{{- end }}
{{- if and (eq $values.belfast.auth "kubernetes") (ne $values.auth.mode "kubernetes") }}
{{- fail "belfast.auth=kubernetes: set auth.mode=kubernetes too, or the operator has no token to show" }}
{{- end }}
{{- if and (eq $values.auth.mode "token") (not $values.auth.existingSecret) }}
{{- fail "auth.mode=token: name the Secret with the token in auth.existingSecret" }}
{{- end }}
{{- if and (eq $values.tls.mode "off") $values.eviction.enabled }}
{{- fail "tls.mode=off: the API server calls webhooks over TLS only; set eviction.enabled=false" }}
{{- end }}
{{- if and $values.gates.enabled (not $values.admission.enabled) }}
{{- fail "admission.enabled=false: nobody would check who may run the Jobs of gates; set gates.enabled=false" }}
{{- end }}
{{- if and $values.gates.namespaces (ne $values.operator.watch "cluster") }}
{{- fail "gates.namespaces is for operator.watch=cluster: without it gates run in the release's namespace" }}
{{- end }}
{{- if gt (int $values.brokers.min) (int $values.brokers.max) }}
{{- fail "brokers.min is above brokers.max" }}
{{- end }}
{{- if and (lookup "v1" "Namespace" "" "kube-system") (not (.Capabilities.APIVersions.Has "anabranch.dev/v1alpha1/BrokerPool")) }}
{{- fail "this cluster doesn't know Logs and Forks yet: install the chart anabranch-crds first" }}
{{- end }}
{{- end }}
