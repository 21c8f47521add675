{{- define "larder.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "larder.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "larder.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "larder.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "larder.selector" -}}
app.kubernetes.io/name: {{ include "larder.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "larder.labels" -}}
{{ include "larder.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- end -}}

{{- define "larder.publicUrl" -}}
{{- required "publicUrl is required: the URL that clients use, such as https://mcp.example.com/mcp" .Values.publicUrl -}}
{{- end -}}

{{- define "larder.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "larder.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "larder.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end -}}

{{/* What the server and the migration have in common: variables that settings come from. */}}
{{- define "larder.environment" -}}
env:
  - name: LARDER_CONFIG
    value: /etc/larder/larder.toml
  - name: LARDER_SERVER__LISTEN
    value: 0.0.0.0:8000
  - name: LARDER_SERVER__PUBLIC_URL
    value: {{ include "larder.publicUrl" . | quote }}
  - name: LARDER_SERVER__SHUTDOWN_DELAY
    value: {{ .Values.shutdownDelay | int | quote }}
  - name: LARDER_SERVER__GRACE
    value: {{ .Values.grace | int | quote }}
  - name: LARDER_METRICS__LISTEN
    value: 0.0.0.0:9464
  - name: LARDER_STORE__URL
    {{- if .Values.store.url }}
    value: {{ .Values.store.url | quote }}
    {{- else }}
    valueFrom:
      secretKeyRef:
        name: {{ required "store.secretName or store.url is required" .Values.store.secretName }}
        key: {{ .Values.store.secretKey }}
    {{- end }}
  {{- if .Values.stateKey.secretName }}
  - name: LARDER_SERVER__STATE_KEY_FILE
    value: /run/secrets/larder/state-key
  {{- end }}
  {{- with .Values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "larder.volumeMounts" -}}
- name: config
  mountPath: /etc/larder
  readOnly: true
{{- if .Values.stateKey.secretName }}
- name: state-key
  mountPath: /run/secrets/larder
  readOnly: true
{{- end }}
{{- with .Values.volumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Takes the root context and the name of the config map. */}}
{{- define "larder.volumes" -}}
{{- $root := index . 0 -}}
- name: config
  configMap:
    name: {{ index . 1 }}
{{- with $root.Values.stateKey.secretName }}
- name: state-key
  secret:
    secretName: {{ . }}
    items:
      - key: {{ $root.Values.stateKey.secretKey }}
        path: state-key
{{- end }}
{{- with $root.Values.volumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "larder.migration" -}}
name: migrate
image: {{ include "larder.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args: ["migrate"]
{{ include "larder.environment" . }}
securityContext:
  {{- include "larder.containerSecurity" . | nindent 2 }}
resources:
  {{- toYaml .Values.migrate.resources | nindent 2 }}
volumeMounts:
  {{- include "larder.volumeMounts" . | nindent 2 }}
{{- end -}}
