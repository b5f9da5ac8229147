{{/* What the pods of all parts have in common: Pod Security's profile "restricted". */}}

{{- define "anabranch.pod.security" -}}
runAsNonRoot: true
{{- with .Values.podSecurity.runAsUser }}
runAsUser: {{ int . }}
runAsGroup: {{ int . }}
fsGroup: {{ int . }}
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "anabranch.container.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* A Service named like the release would set ANABRANCH_PORT in every pod beside it. */}}
{{- define "anabranch.pod.base" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "anabranch.pod.security" . | nindent 2 }}
{{- include "anabranch.pullSecrets" . }}
{{- end }}

{{/* (dict "placement" .Values.metadata) */}}
{{- define "anabranch.placement" -}}
{{- with .placement.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .placement.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .placement.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* Over nodes and zones. (dict "root" $ "part" "gateway" "hosts" "ScheduleAnyway") */}}
{{- define "anabranch.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: {{ .hosts }}
    # A node that is being drained mustn't be what keeps a pod from all others.
    nodeTaintsPolicy: Honor
    labelSelector:
      matchLabels:
        {{- include "anabranch.selector" . | nindent 8 }}
  - maxSkew: 1
    topologyKey: topology.kubernetes.io/zone
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "anabranch.selector" . | nindent 8 }}
{{- end }}

{{/* What a client needs to be let in: the authority to trust, and a token. (dict "root" $) */}}
{{- define "anabranch.client.volume" -}}
- name: service
  projected:
    sources:
      {{- if include "anabranch.tls" .root }}
      - configMap:
          name: {{ .root.Release.Name }}-ca
          {{- if .optional }}
          optional: true
          {{- end }}
          items:
            - key: ca.crt
              path: ca.crt
      {{- end }}
      {{- if eq .root.Values.auth.mode "kubernetes" }}
      - serviceAccountToken:
          audience: anabranch
          expirationSeconds: 3600
          path: token
      {{- else }}
      - secret:
          name: {{ .root.Values.auth.existingSecret }}
          items:
            - key: ANABRANCH_TOKEN
              path: token
      {{- end }}
{{- end }}

{{- define "anabranch.client.mount" -}}
- name: service
  mountPath: /var/run/anabranch/service
  readOnly: true
{{- end }}

{{/* What a process needs to ask the API server, in the usual place. */}}
{{- define "anabranch.api.volume" -}}
- name: api
  projected:
    sources:
      - serviceAccountToken:
          expirationSeconds: 3600
          path: token
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}

{{- define "anabranch.api.mount" -}}
- name: api
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
{{- end }}
