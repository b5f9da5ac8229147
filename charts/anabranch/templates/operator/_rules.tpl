{{/* The operator's rights; each has the reason above it, and nobody else's objects are in them. */}}

{{- define "anabranch.operator.role" -}}
{{ if eq .Values.operator.watch "cluster" }}{{ .Release.Namespace }}-{{ end }}{{ .Release.Name }}-operator
{{- end }}

{{- define "anabranch.operator.rules.logs" -}}
# What is declared; patch is for the label of forks, and for finalizers of earlier versions that are taken away.
- apiGroups: [anabranch.dev]
  resources: [logs, forks]
  verbs: [list, watch, patch]
# A fork goes some time after its end, if its spec says so.
- apiGroups: [anabranch.dev]
  resources: [forks]
  verbs: [delete]
# What became of it.
- apiGroups: [anabranch.dev]
  resources: [logs/status, forks/status]
  verbs: [patch]
# Children block their owner's deletion; OwnerReferencesPermissionEnforcement asks for this.
- apiGroups: [anabranch.dev]
  resources: [logs/finalizers, forks/finalizers]
  verbs: [update]
{{- if eq .Values.auth.mode "kubernetes" }}
# What it asks of the log service, which looks these verbs up.
- apiGroups: [anabranch.dev]
  resources: [logs]
  verbs: [create, update, delete, read, fork, trim]
- apiGroups: [anabranch.dev]
  resources: [forks]
  verbs: [create, update, delete, fork, promote]
{{- end }}
# The Service of each log and fork, and where it leads; get, so that nobody else's is taken.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [discovery.k8s.io]
  resources: [endpointslices]
  verbs: [list, watch, create, patch, delete]
# The Jobs of gates; where they may be made is in the role for gates.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list, watch]
# The pods of gates; of brokers and members where they are in the same namespace.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- if include "anabranch.tls" . }}
# The authority that clients trust, beside them.
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ .Release.Name }}-ca]
  verbs: [get, create, patch]
{{- end }}
# What it says to people.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{- define "anabranch.operator.rules.gates" -}}
# The Jobs of gates. The admission policy has checked that their authors may create Jobs too.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [create, patch]
{{- if .Values.gates.logs }}
# The last lines of a failed gate, and which of its containers failed.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- end }}
{{- end }}

{{- define "anabranch.operator.rules.release" -}}
# The pools, sequencers and shards, and what became of them.
- apiGroups: [anabranch.dev]
  resources: [brokerpools, sequencersets, shardgroups]
  verbs: [list, watch]
- apiGroups: [anabranch.dev]
  resources: [brokerpools/status, sequencersets/status, shardgroups/status]
  verbs: [patch]
- apiGroups: [anabranch.dev]
  resources: [brokerpools/finalizers, sequencersets/finalizers, shardgroups/finalizers]
  verbs: [update]
# Sequencers and shards of Logs that ask for them; get, so that nobody else's are taken; delete, because
# OwnerReferencesPermissionEnforcement asks for it of whoever changes the owners of an object.
- apiGroups: [anabranch.dev]
  resources: [sequencersets, shardgroups]
  verbs: [get, create, patch, delete]
# The volumes of sequencers and shards; those of a shard go when it has left and is trimmed.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list, watch, create, patch, delete]
# The quotas of logs, which the pods of shards and sequencers mount.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch, create, patch]
{{- if eq .Values.auth.mode "kubernetes" }}
# It asks the log service about its brokers, and to drain and forget them.
- apiGroups: [anabranch.dev]
  resources: [brokerpools]
  verbs: [update]
{{- end }}
# Brokers, sequencers and shards, made and ended one by one; members, ended one by one when they are to be rolled.
- apiGroups: [""]
  resources: [pods]
  verbs: [create, delete]
# Budgets, so that drains take one pod at a time.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch]
# What members should be.
- apiGroups: [apps]
  resources: [statefulsets]
  resourceNames: [{{ .Release.Name }}-metadata]
  verbs: [list, watch]
{{- if include "anabranch.tls" . }}
# The authority and the certificates. To create by name is possible by server-side apply.
- apiGroups: [""]
  resources: [secrets]
  resourceNames:
    {{- include "anabranch.operator.secrets" . | nindent 4 }}
  verbs: [get{{ if eq .Values.tls.mode "self" }}, create, patch{{ end }}]
{{- end }}
{{- with include "anabranch.tokens" . | fromYamlArray }}
# Secrets with tokens, made if they are missing. To create by name is possible by server-side apply.
- apiGroups: [""]
  resources: [secrets]
  resourceNames:
    {{- range . }}
    - {{ .name }}
    {{- end }}
  verbs: [get, create, patch]
{{- end }}
# The election; who may make a Lease may make any.
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [{{ .Release.Name }}-operator]
  verbs: [get, list, watch, update]
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [create]
{{- if ne .Values.operator.watch "cluster" }}
# Logs of a namespace that is being deleted end whatever forks they have.
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [{{ .Release.Namespace }}]
  verbs: [get]
{{- end }}
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
# Logs of a namespace that is being deleted end whatever forks they have.
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get]
{{- end }}
{{- if or (eq .Values.operator.watch "cluster") .Values.eviction.enabled }}
# Nodes that are being drained: without them nobody's word for an eviction could be checked.
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- end }}
{{- if and .Values.eviction.enabled (has .Values.tls.mode (list "self" "provided")) }}
# Whom the API server trusts when it calls the webhook.
- apiGroups: [admissionregistration.k8s.io]
  resources: [validatingwebhookconfigurations]
  resourceNames: [{{ include "anabranch.webhook" . }}]
  verbs: [get, patch]
{{- end }}
{{- end }}
