{{- define "sluice.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluice.account" -}}
{{- default (include "sluice.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "sluice.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sluice.labels" -}}
{{ include "sluice.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "sluice.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* Where consumers run, as far as the chart knows; as JSON. */ -}}
{{- define "sluice.consumer.namespaces" -}}
{{- $watched := .Values.watchNamespaces -}}
{{- $named := .Values.consumer.namespaces -}}
{{- range $named -}}
{{- if and $watched (not (has . $watched)) -}}
{{- fail (printf "consumer.namespaces: %s is not in watchNamespaces, so nothing would run there; add it there, or leave consumer.namespaces out" .) -}}
{{- end -}}
{{- end -}}
{{- default $watched $named | toJson -}}
{{- end -}}

{{- /* Those of them that get the consumers' account from the chart; as JSON. */ -}}
{{- define "sluice.consumer.accounts" -}}
{{- if .Values.consumer.serviceAccount.create -}}
{{- include "sluice.consumer.namespaces" . -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{- /* Exactly the calls that the operator makes; tests/operator/test_rbac.py records them and compares. */ -}}
{{- define "sluice.rules.resources" -}}
- apiGroups: [sluice.dev]
  resources: [kinesisconsumers]
  verbs: [get, list, watch, patch]  # patch: the finalizer
- apiGroups: [sluice.dev]
  resources: [kinesisconsumers/status]
  verbs: [update]
- apiGroups: [""]
  resources: [namespaces]  # whether a deleted resource's namespace goes too
  verbs: [get]
  {{- with .Values.watchNamespaces }}
  resourceNames: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- define "sluice.rules.pods" -}}
- apiGroups: [sluice.dev]
  resources: [kinesisconsumers/finalizers]  # owner references that block the owner's deletion
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
{{- end -}}
