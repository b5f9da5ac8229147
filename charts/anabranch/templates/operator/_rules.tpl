{{/* The operator's rights; each has the reason above it, and nobody else's objects are in them. */}}

{{- define "anabranch.operator.role" -}}
{{ if eq .Values.operator.watch "cluster" }}{{ .Release.Namespace }}-{{ end }}{{ .Release.Name }}-operator
{{- end }}

{{- define "anabranch.operator.rules.logs" -}}
# What is declared; patch is for the finalizer, which server-side apply puts and takes.
- apiGroups: [anabranch.dev]
  resources: [logs, forks]
  verbs: [get, list, watch, patch]
# A fork goes with its parent, or some time after its end, if its spec says so.
- apiGroups: [anabranch.dev]
  resources: [forks]
  verbs: [delete]
# What became of it.
- apiGroups: [anabranch.dev]
  resources: [logs/status, forks/status]
  verbs: [patch]
# Children that block their owner's deletion, where OwnerReferencesPermissionEnforcement is on.
- apiGroups: [anabranch.dev]
  resources: [logs/finalizers, forks/finalizers]
  verbs: [update]
{{- if eq .Values.auth.mode "kubernetes" }}
# What it asks of the log service, which looks these verbs up.
- apiGroups: [anabranch.dev]
  resources: [logs, forks]
  verbs: [create, update, delete, read, fork, promote, trim]
{{- end }}
# The Service of each log and fork, and where it leads.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [get, list, watch, create, patch, delete]
# Endpoints that are no pods of a selector, where RestrictedEndpointsAdmission is on.
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices/restricted]
  verbs: [create]
# Gates.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
# A gate's last lines, when it has failed.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# The authority that gates trust, beside them.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch]
# What it says to people.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}

{{- define "anabranch.operator.rules.release" -}}
# The pools and what became of them.
- apiGroups: [anabranch.dev]
  resources: [brokerpools]
  verbs: [get, list, watch]
- apiGroups: [anabranch.dev]
  resources: [brokerpools/status]
  verbs: [patch]
- apiGroups: [anabranch.dev]
  resources: [brokerpools/finalizers]
  verbs: [update]
# Brokers, made and ended one by one; members, ended one by one when they are to be rolled.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# A pool's budget, so that drains take one broker at a time.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# What members should be.
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [get, list, watch]
{{- if eq .Values.tls.mode "self" }}
# The authority and the certificates. Who may make a Secret can't be told by which name.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
{{- end }}
{{- if include "anabranch.tls" . }}
- apiGroups: [""]
  resources: [secrets]
  resourceNames:
    {{- include "anabranch.operator.secrets" . | nindent 4 }}
  verbs: [get, list, watch{{ if eq .Values.tls.mode "self" }}, patch{{ end }}]
{{- end }}
# The election.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get, list, watch, update, patch, delete]
{{- end }}

{{- define "anabranch.operator.secrets" -}}
- {{ .Release.Name }}-ca
{{- $root := . }}
{{- range $part, $_ := include "anabranch.leaves" . | fromYaml }}
- {{ include "anabranch.tls.secret" (dict "root" $root "part" $part) }}
{{- end }}
{{- end }}

{{- define "anabranch.operator.rules.cluster" -}}
{{- if eq .Values.operator.watch "cluster" }}
# What is in a namespace that is being deleted is let go at once.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch]
# Nodes that are about to go.
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- end }}
{{- if and .Values.eviction.enabled (has .Values.tls.mode (list "self" "provided")) }}
# Whom the API server trusts when it calls the webhook.
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "anabranch.webhook" . }}]
  verbs: [get, patch]
{{- end }}
{{- end }}
