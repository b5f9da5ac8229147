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
    {{- include "anabranch.to.roles" (dict "roles" (list "sequencer" "shard") "ports" (list 7440 7450 7451)) | nindent 4 }}
metadata:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "broker") "ports" (list 7430)) | nindent 4 }}
    {{- include "anabranch.from" (dict "root" . "parts" (list "operator") "ports" (list 7431)) | nindent 4 }}
    {{- include "anabranch.from.monitoring" (dict "root" . "ports" (list 7431)) | nindent 4 }}
  egress:
    {{- include "anabranch.to.names" . | nindent 4 }}
    {{- include "anabranch.to.etcd" . | nindent 4 }}
    {{- include "anabranch.to.s3" (dict "root" . "port" $s3) | nindent 4 }}
    {{- with .Values.networkPolicies.extraEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
broker:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "operator") "ports" (list 7420 7422)) | nindent 4 }}
    {{- include "anabranch.from" (dict "root" . "parts" (list "gateway" "test") "ports" (list 7420)) | nindent 4 }}
    # Lazy fronts have what they hold committed.
    {{- include "anabranch.from.roles" (dict "roles" (list "sequencer") "ports" (list 7420)) | nindent 4 }}
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
    # The records of Belfast and Erwin logs.
    {{- include "anabranch.to.roles" (dict "roles" (list "sequencer" "shard") "ports" (list 7440 7450)) | nindent 4 }}
{{- end }}
{{- if .Values.dev.enabled }}
etcd:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "metadata") "ports" (list 2379)) | nindent 4 }}
    {{- if or .Values.belfast.epochs .Values.erwin.etcd }}
    {{- include "anabranch.from.roles" (dict "roles" (list "sequencer") "ports" (list 2379)) | nindent 4 }}
    {{- end }}
s3:
  ingress:
    {{- include "anabranch.from" (dict "root" . "parts" (list "metadata" "broker") "ports" (list 9000)) | nindent 4 }}
    # Readers of scan plans fetch what was signed for them.
    {{- with .Values.networkPolicies.clients }}
    - from:
        {{- toYaml . | nindent 8 }}
      ports:
        - port: 9000
    {{- end }}
{{- end }}
{{- $belfast := list "sequencer" "shard" }}
{{- /* What sequencers count the operator doesn't ask for. */}}
{{- $asked := dict "sequencer" (list 7440) "shard" (list 7450 7451) }}
{{- range $role, $probes := dict "sequencer" 7441 "shard" 7451 }}
{{- $clients := index $asked $role | first }}
{{ $role }}:
  ingress:
    {{- include "anabranch.from.roles" (dict "roles" $belfast "ports" (list $clients)) | nindent 4 }}
    {{- include "anabranch.from" (dict "root" $ "parts" (list "operator") "ports" (index $asked $role)) | nindent 4 }}
    {{- if $values.gateway.enabled }}
    {{- include "anabranch.from" (dict "root" $ "parts" (list "gateway") "ports" (list $clients)) | nindent 4 }}
    {{- end }}
    {{- with $values.networkPolicies.clients }}
    - from:
        {{- toYaml . | nindent 8 }}
      ports:
        - port: {{ $clients }}
    {{- end }}
    {{- include "anabranch.from.monitoring" (dict "root" $ "ports" (list $probes)) | nindent 4 }}
  egress:
    {{- include "anabranch.to.names" $ | nindent 4 }}
    {{- include "anabranch.to.roles" (dict "roles" $belfast "ports" (list 7440 7450)) | nindent 4 }}
    {{- if eq $role "sequencer" }}
    # A lazy front is before a log of the brokers.
    {{- include "anabranch.to" (dict "root" $ "part" "broker" "ports" (list 7420)) | nindent 4 }}
    {{- end }}
    {{- if and (eq $role "sequencer") (or $values.belfast.epochs $values.erwin.etcd) }}
    {{- include "anabranch.to.etcd" $ | nindent 4 }}
    {{- end }}
    {{- if eq $values.belfast.auth "kubernetes" }}
    {{- include "anabranch.to.api" $ | nindent 4 }}
    {{- end }}
    {{- if eq $role "shard" }}
    {{- with $values.networkPolicies.shardEgress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
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

{{/* Sequencers and shards are of resources, not of the release. (dict "roles" ... "ports" ...) */}}
{{- define "anabranch.roles" -}}
- podSelector:
    matchExpressions:
      - key: anabranch.dev/role
        operator: In
        values: {{ toJson .roles }}
{{- end }}

{{- define "anabranch.from.roles" -}}
- from:
    {{- include "anabranch.roles" . | nindent 4 }}
  {{- include "anabranch.ports" .ports | nindent 2 }}
{{- end }}

{{- define "anabranch.to.roles" -}}
- to:
    {{- include "anabranch.roles" . | nindent 4 }}
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

{{- define "anabranch.to.etcd" -}}
{{- if .Values.dev.enabled }}
{{- include "anabranch.to" (dict "root" . "part" "etcd" "ports" (list 2379)) }}
{{- else }}
- ports:
    {{- range $address := .Values.etcd.endpoints }}
    - port: {{ include "anabranch.port" (dict "address" $address "else" 2379) }}
    {{- end }}
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
