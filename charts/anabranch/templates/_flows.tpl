{{/* Who talks to whom, by part. */}}
{{- define "anabranch.flows" -}}
{{- $values := .Values -}}
{{- $s3 := .Values.dev.enabled | ternary 9000 (include "anabranch.port" (dict "address" .Values.s3.endpoint "else" 443) | int) -}}
operator:
  ingress:
    {{- include "anabranch.from.monitoring" (dict "root" . "ports" (list 8080)) | nindent 4 }}
    # The API server calls the webhook, from an address that no selector knows.
    - ports:
        - port: 9443
  egress:
    {{- include "anabranch.to.names" . | nindent 4 }}
    {{- include "anabranch.to.api" . | nindent 4 }}
    {{- include "anabranch.to" (dict "root" . "part" "broker" "ports" (list 7420 7422)) | nindent 4 }}
    {{- include "anabranch.to" (dict "root" . "part" "metadata" "ports" (list 7431)) | nindent 4 }}
    # Sequencers and shards are of resources, not of the release.
    - to:
        - podSelector:
            matchExpressions:
              - key: anabranch.dev/role
                operator: In
                values: [sequencer, shard]
      ports:
        - port: 7440
        - port: 7450
        - port: 7451
metadata:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "broker") "ports" (list 7430)) | nindent 4 }}
    {{- include "anabranch.from" (dict "root" . "parts" (list "operator") "ports" (list 7431)) | nindent 4 }}
    {{- include "anabranch.from.monitoring" (dict "root" . "ports" (list 7431)) | nindent 4 }}
  egress:
    {{- include "anabranch.to.names" . | nindent 4 }}
    {{- if .Values.dev.enabled }}
    {{- include "anabranch.to" (dict "root" . "part" "etcd" "ports" (list 2379)) | nindent 4 }}
    {{- else }}
    - ports:
        {{- range $address := .Values.etcd.endpoints }}
        - port: {{ include "anabranch.port" (dict "address" $address "else" 2379) }}
        {{- end }}
    {{- end }}
    {{- include "anabranch.to.s3" (dict "root" . "port" $s3) | nindent 4 }}
    {{- with .Values.networkPolicies.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
broker:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "operator") "ports" (list 7420 7422)) | nindent 4 }}
    {{- include "anabranch.from" (dict "root" . "parts" (list "gateway" "test") "ports" (list 7420)) | nindent 4 }}
    {{- with .Values.networkPolicies.clients }}
    - from:
        {{- toYaml . | nindent 8 }}
      ports:
        - port: 7420
    {{- end }}
    {{- include "anabranch.from.monitoring" (dict "root" . "ports" (list 7422)) | nindent 4 }}
  egress:
    {{- include "anabranch.to.names" . | nindent 4 }}
    {{- if eq .Values.auth.mode "kubernetes" }}
    {{- include "anabranch.to.api" . | nindent 4 }}
    {{- end }}
    {{- include "anabranch.to" (dict "root" . "part" "metadata" "ports" (list 7430)) | nindent 4 }}
    {{- include "anabranch.to.s3" (dict "root" . "port" $s3) | nindent 4 }}
    {{- with .Values.networkPolicies.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- if .Values.gateway.enabled }}
gateway:
  ingress:
    {{- with .Values.networkPolicies.clients }}
    - from:
        {{- toYaml . | nindent 8 }}
      ports:
        - port: 7421
    {{- end }}
    {{- include "anabranch.from.monitoring" (dict "root" . "ports" (list 7422)) | nindent 4 }}
  egress:
    {{- include "anabranch.to.names" . | nindent 4 }}
    {{- if eq .Values.auth.mode "kubernetes" }}
    {{- include "anabranch.to.api" . | nindent 4 }}
    {{- end }}
    {{- include "anabranch.to" (dict "root" . "part" "broker" "ports" (list 7420)) | nindent 4 }}
{{- end }}
{{- if .Values.dev.enabled }}
etcd:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "metadata") "ports" (list 2379)) | nindent 4 }}
    {{- if .Values.belfast.epochs }}
    - from:
        - podSelector:
            matchLabels:
              anabranch.dev/role: sequencer
      ports:
        - port: 2379
    {{- end }}
s3:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "metadata" "broker") "ports" (list 9000)) | nindent 4 }}
{{- end }}
test:
  egress:
    {{- include "anabranch.to.names" . | nindent 4 }}
    {{- include "anabranch.to" (dict "root" . "part" "broker" "ports" (list 7420)) | nindent 4 }}
{{- end }}

{{/* The port of an address. (dict "address" "https://s3:9000" "else" 443) */}}
{{- define "anabranch.port" -}}
{{ regexFind "[0-9]+$" (regexFind ":[0-9]+$" .address) | default .else }}
{{- end }}

{{- define "anabranch.ports" -}}
ports:
  {{- range . }}
  - port: {{ . }}
  {{- end }}
{{- end }}

{{- define "anabranch.from" -}}
- from:
    {{- $root := .root }}
    {{- range $part := .parts }}
    - podSelector:
        matchLabels:
          {{- include "anabranch.selector" (dict "root" $root "part" $part) | nindent 10 }}
    {{- end }}
  {{- include "anabranch.ports" .ports | nindent 2 }}
{{- end }}

{{- define "anabranch.from.monitoring" -}}
{{- if .root.Values.networkPolicies.monitoring }}
- from:
    {{- toYaml .root.Values.networkPolicies.monitoring | nindent 4 }}
  {{- include "anabranch.ports" .ports | nindent 2 }}
{{- end }}
{{- end }}

{{- define "anabranch.to" -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "anabranch.selector" . | nindent 10 }}
  {{- include "anabranch.ports" .ports | nindent 2 }}
{{- end }}

{{/* The cluster's DNS: pods, or something on each node. */}}
{{- define "anabranch.to.names" -}}
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- end }}

{{/* The API server is no pod that could be selected. */}}
{{- define "anabranch.to.api" -}}
- ports:
    {{- range .Values.networkPolicies.apiServerPorts }}
    - port: {{ int . }}
    {{- end }}
{{- end }}

{{- define "anabranch.to.s3" -}}
{{- if .root.Values.dev.enabled }}
{{- include "anabranch.to" (dict "root" .root "part" "s3" "ports" (list .port)) }}
{{- else }}
- ports:
    - port: {{ .port }}
{{- end }}
{{- end }}
