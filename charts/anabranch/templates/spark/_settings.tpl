{{/* What drivers and executors of Spark are told. */}}

{{/* The defaults of `spark-submit`, as JSON. */}}
{{- define "anabranch.spark.settings" -}}
{{- $executors := .Values.spark.executors -}}
{{- $found := dict
  "spark.master" "k8s://https://kubernetes.default.svc"
  "spark.kubernetes.container.image" (include "anabranch.image" (dict "root" . "image" .Values.images.spark))
  "spark.kubernetes.container.image.pullPolicy" .Values.images.pullPolicy
  "spark.kubernetes.authenticate.executor.serviceAccountName" (printf "%s-spark-executor" .Release.Name)
  "spark.kubernetes.executor.podTemplateFile" "/etc/spark/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.kubernetes.executor.disableConfigMap" "true"
  "spark.kubernetes.executor.request.cores" (toString $executors.cpu)
  "spark.kubernetes.driver.service.deleteOnTermination" "false"
  "spark.executor.instances" (int $executors.instances | toString)
  "spark.executor.cores" (int $executors.cores | toString)
  "spark.executor.memory" $executors.memory
  "spark.executor.memoryOverhead" $executors.memoryOverhead
  "spark.driver.memory" "768m"
  "spark.python.authenticate.socketTimeout" "60s"
-}}
{{- with .Values.images.pullSecrets }}{{ $_ := set $found "spark.kubernetes.container.image.pullSecrets" (join "," .) }}{{ end -}}
{{ mergeOverwrite $found .Values.spark.settings | toJson }}
{{- end }}

{{/* The pods that Spark fills with its own: Pod Security's profile "restricted", and no token but the
log service's. */}}
{{- define "anabranch.spark.executor" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    app.kubernetes.io/part-of: anabranch
    app.kubernetes.io/component: spark-executor
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  securityContext:
    runAsNonRoot: true
    runAsUser: 185
    runAsGroup: 185
    fsGroup: 185
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: executor
      {{- if and .Values.dev.enabled (include "anabranch.tls" .) }}
      env:
        # The trial's store has a certificate of the release's own authority.
        - name: SSL_CERT_FILE
          value: /var/run/anabranch/ca.crt
      {{- end }}
      securityContext:
        {{- include "anabranch.container.security" . | nindent 8 }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        - name: service
          mountPath: /var/run/anabranch
          readOnly: true
  volumes:
    - name: tmp
      emptyDir: {}
    {{- include "anabranch.client.volume" (dict "root" .) | nindent 4 }}
{{- end }}
