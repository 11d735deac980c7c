{{/* What Compose says for each of our services: image, user, rights, read-only root, /tmp in memory. */}}
{{- define "presage.container" -}}
image: {{ include "presage.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
envFrom:
  - configMapRef: {name: {{ include "presage.name" (list . "settings") }}}
{{- end }}

{{/*
A pod template: (dict "root" $ "component" … "command" (list …) "env" YAML "resources" … "grace" seconds), and if needed
"probes" and "ports" (YAML), "labels" (YAML), "scheduling" (YAML), "pause" (seconds before it is asked to end), "exports" (how the volume is mounted: rw or ro),
"kalshi" (whether its key is mounted), "restart", and "first" for what does not wait for the schema.
*/}}
{{- define "presage.pod" -}}
{{- $root := .root -}}
{{- /* Exports in a bucket need no volume. */ -}}
{{- $exports := ternary "" (.exports | default "") (not (empty ($root.Values.settings | default dict).PRESAGE_EXPORTS_S3)) -}}
metadata:
  labels:
    {{- include "presage.labels" (list $root .component) | nindent 4 }}
    {{- with .labels }}{{ . | nindent 4 }}{{ end }}
  annotations:
    checksum/settings: {{ include "presage.settings" $root | sha256sum }}
spec:
  serviceAccountName: {{ $root.Release.Name }}
  automountServiceAccountToken: false
  # Variables of services would be read as settings: that of RELEASE-api is PRESAGE_API_PORT.
  enableServiceLinks: false
  # As Compose's `init`: the pod's own first process passes over those that have lost their parent.
  shareProcessNamespace: true
  terminationGracePeriodSeconds: {{ .grace }}
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  {{- with .scheduling }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $root.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if not .first }}
  initContainers:
    - name: schema
      command: [python, -m, cli.stack.migrated]
      {{- include "presage.container" $root | nindent 6 }}
      env: {{- .env | nindent 8 }}
      resources: {{- toYaml $root.Values.migrate.resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
  {{- end }}
  containers:
    - name: {{ .component }}
      command: {{- toYaml .command | nindent 8 }}
      {{- include "presage.container" $root | nindent 6 }}
      env: {{- .env | nindent 8 }}
      {{- with .ports }}
      ports: {{- . | nindent 8 }}
      {{- end }}
      {{- with .probes }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with .pause }}
      # Asked to end it accepts nothing more; until then proxies learn that it is about to.
      lifecycle: {preStop: {exec: {command: [sleep, {{ . | quote }}]}}}
      {{- end }}
      resources: {{- toYaml .resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- with $exports }}
        - {name: exports, mountPath: /exports{{ if eq . "ro" }}, readOnly: true{{ end }}}
        {{- end }}
        {{- if .kalshi }}
        - {name: kalshi, mountPath: /kalshi, readOnly: true}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 512Mi}
    {{- if $exports }}
    - name: exports
      persistentVolumeClaim:
        claimName: {{ include "presage.name" (list $root "exports") }}
        {{- if eq $exports "ro" }}
        readOnly: true
        {{- end }}
    {{- end }}
    {{- if .kalshi }}
    - name: kalshi
      secret:
        secretName: {{ $root.Values.secrets.kalshi }}
        items: [{key: key.pem, path: key.pem}]
        defaultMode: 0440  # for the group, which is fsGroup
    {{- end }}
{{- end }}

{{/* Pods on different nodes: (list $ component labels). */}}
{{- define "presage.apart" -}}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "presage.selector" (list (index . 0) (index . 1)) | nindent 12 }}
            {{- with (index . 2) }}{{ . | nindent 12 }}{{ end }}
{{- end }}

{{/* Pods spread over nodes where that is possible: (list $ component). */}}
{{- define "presage.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "presage.selector" . | nindent 8 }}
{{- end }}

{{/* Probes of a server: (list PORT PATH), with a Host header after them if it asks for one. Only a process that accepts no
connection is ended: the path's answer may depend on others. */}}
{{- define "presage.probes.http" -}}
startupProbe:
  tcpSocket: {port: {{ index . 0 }}}
  periodSeconds: 5
  failureThreshold: 36
livenessProbe:
  tcpSocket: {port: {{ index . 0 }}}
  periodSeconds: 15
  timeoutSeconds: 10
  failureThreshold: 4
readinessProbe:
  httpGet:
    path: {{ index . 1 }}
    port: {{ index . 0 }}
    {{- if gt (len .) 2 }}
    httpHeaders: [{name: Host, value: {{ index . 2 }}}]
    {{- end }}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: 2
{{- end }}

{{/* Probes of a feed: by its lease in the database. */}}
{{- define "presage.probes.feed" -}}
startupProbe:
  exec: {command: [python, -m, orchestration.feeds.probe]}
  periodSeconds: 10
  timeoutSeconds: 30
  failureThreshold: 30
livenessProbe:
  exec: {command: [python, -m, orchestration.feeds.probe]}
  periodSeconds: 30
  timeoutSeconds: 30
  failureThreshold: 4
readinessProbe:
  exec: {command: [python, -m, orchestration.feeds.probe, --ready]}
  periodSeconds: 15
  timeoutSeconds: 30
{{- end }}
