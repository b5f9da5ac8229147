{{/* The volumes of the etcd and the S3 server of a trial. */}}

{{- define "anabranch.dev.claims" -}}
{{- $storage := .Values.dev.storage -}}
{{- if $storage.persistent }}
persistentVolumeClaimRetentionPolicy:
  whenDeleted: Delete
  whenScaled: Retain
volumeClaimTemplates:
  - metadata:
      name: data
    spec:
      accessModes: [ReadWriteOnce]
      {{- with $storage.className }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests:
          storage: {{ $storage.size }}
{{- end }}
{{- end }}

{{- define "anabranch.dev.mounts" -}}
- name: data
  mountPath: /var/lib/dev
- name: tmp
  mountPath: /tmp
{{- if include "anabranch.tls" . }}
- name: tls
  mountPath: /var/run/anabranch/tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "anabranch.dev.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 1Gi
{{- if not .root.Values.dev.storage.persistent }}
- name: data
  emptyDir:
    sizeLimit: {{ .root.Values.dev.storage.size }}
{{- end }}
{{- if include "anabranch.tls" .root }}
- name: tls
  secret:
    secretName: {{ include "anabranch.tls.secret" . }}
{{- end }}
{{- end }}
