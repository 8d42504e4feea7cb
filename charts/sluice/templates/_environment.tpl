{{- /* What the operator reads (sluice_operator/settings.py), also in the pod of `helm test`. */ -}}
{{- define "sluice.environment" -}}
- {name: WATCH_NAMESPACES, value: {{ join "," .Values.watchNamespaces | quote }}}
- {name: SLUICE_CONSUMER_IMAGE, value: {{ include "sluice.consumer.image" . | quote }}}
- {name: SLUICE_EXECUTOR_ACCOUNT, value: {{ .Values.consumer.executorServiceAccount.name | quote }}}
- {name: SLUICE_PRIVILEGED_PODS, value: {{ .Values.policy.privilegedPods | quote }}}
- {name: SLUICE_SERVICE_ACCOUNTS, value: {{ join "," .Values.policy.serviceAccounts | quote }}}
- {name: SLUICE_ACCOUNT, value: "{{ .Release.Namespace }}/{{ include "sluice.account" . }}"}
- {name: SLUICE_LOG_FORMAT, value: {{ .Values.logFormat }}}
- {name: SLUICE_LEASE, value: "{{ .Release.Namespace }}/{{ include "sluice.fullname" . }}"}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- with .Values.class }}
- {name: SLUICE_CLASS, value: {{ . | quote }}}
{{- end }}
{{- with .Values.clusterName }}
- {name: SLUICE_CLUSTER_NAME, value: {{ . | quote }}}
{{- end }}
{{- with .Values.driverMetrics.port }}
- {name: SLUICE_DRIVER_METRICS_PORT, value: {{ int . | quote }}}
{{- end }}
{{- end -}}
