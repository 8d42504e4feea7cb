{{- define "sluice.fullname" -}}
{{- if not (hasKey .Values "updateStrategy") -}}
{{- fail "these values are those of an earlier chart, without what is new in this one: upgrade with --reset-then-reuse-values, not with --reuse-values" -}}
{{- end -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (default .Chart.Name .Values.nameOverride) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (default .Chart.Name .Values.nameOverride) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sluice.account" -}}
{{- $account := .Values.serviceAccount -}}
{{- if not (or $account.create $account.name) -}}
{{- fail "serviceAccount.name: with serviceAccount.create false, name the account that you made for the operator" -}}
{{- end -}}
{{- default (include "sluice.fullname" .) $account.name -}}
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

{{- /*
Metadata of an object: dict "root" $ "name" … "namespace" … (none for the cluster's) "labels" … "annotations" …
The chart's labels win over an object's own, and both over the common ones: selectors depend on the first.
*/ -}}
{{- define "sluice.metadata" -}}
name: {{ .name }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels: {{- merge (include "sluice.labels" .root | fromYaml) (default dict .labels) .root.Values.commonLabels | toYaml | nindent 2 }}
{{- with merge (dict) (default dict .annotations) .root.Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* An image's name with global.imageRegistry before it, unless it names a registry itself: dict "root" $ "name" … */ -}}
{{- define "sluice.registered" -}}
{{- $first := splitList "/" .name | first -}}
{{- $registry := (default dict .root.Values.global).imageRegistry -}}
{{- if and $registry (or (not (contains "/" .name)) (not (or (contains "." $first) (contains ":" $first) (eq $first "localhost")))) -}}
{{- printf "%s/%s" (trimSuffix "/" $registry) .name -}}
{{- else -}}
{{- .name -}}
{{- end -}}
{{- end -}}

{{- define "sluice.image" -}}
{{- $name := include "sluice.registered" (dict "root" . "name" .Values.image.repository) -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $name .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "sluice.consumer.image" -}}
{{- include "sluice.registered" (dict "root" . "name" (default (printf "sluice-consumer:%s" .Chart.AppVersion) .Values.consumer.image)) -}}
{{- end -}}

{{- /* imagePullSecrets of a pod or an account, with the global ones; nothing if there are none: dict "root" $ "own" … */ -}}
{{- define "sluice.pullsecrets" -}}
{{- with concat (default list .own) (default list (default dict .root.Values.global).imagePullSecrets) | uniq -}}
imagePullSecrets: {{- toYaml . | nindent 2 }}
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

{{- /* Exactly the calls that the operator makes; tests/operator/helm/test_rbac.py records them and compares. */ -}}
{{- define "sluice.rules.resources" -}}
- apiGroups: [sluice.dev]
  resources: [kinesisconsumers, kinesisconsumerpools]
  verbs: [get, list, watch, patch]  # patch: the finalizer
- apiGroups: [sluice.dev]
  resources: [kinesisconsumers/status, kinesisconsumerpools/status]
  verbs: [update]
- apiGroups: [""]
  resources: [namespaces]  # whether a deleted resource's namespace goes too
  verbs: [get]
  {{- with .Values.watchNamespaces }}
  resourceNames: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* Which cluster this is: the uid of this namespace. Of use only in a ClusterRole. */ -}}
{{- define "sluice.rules.cluster" -}}
- apiGroups: [""]
  resources: [namespaces]
  resourceNames: [kube-system]
  verbs: [get]
{{- end -}}

{{- define "sluice.rules.pods" -}}
- apiGroups: [sluice.dev]
  resources: [kinesisconsumers/finalizers, kinesisconsumerpools/finalizers]  # owner references that block the owner's deletion
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
