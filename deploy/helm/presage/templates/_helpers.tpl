{{/* Names: RELEASE-COMPONENT. */}}
{{- define "presage.name" -}}
{{ (index . 0).Release.Name }}-{{ index . 1 }}
{{- end }}

{{- define "presage.image" -}}
{{- with .Values.image -}}
{{ with .registry }}{{ . }}/{{ end }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}
{{- end -}}
{{- end }}

{{/* What a component is selected by: (list $ "api"). */}}
{{- define "presage.selector" -}}
app.kubernetes.io/name: presage
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "presage.labels" -}}
{{ include "presage.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{- define "presage.metadata" -}}
name: {{ include "presage.name" . }}
labels: {{- include "presage.labels" . | nindent 2 }}
{{- end }}

{{- define "presage.cluster" -}}
{{ .Release.Name }}-{{ .Values.database.cluster.name }}
{{- end }}

{{/* An environment variable from a Secret: (list NAME SECRET KEY), or "optional" after them. */}}
{{- define "presage.secret" -}}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ index . 1 }}
      key: {{ index . 2 }}
      {{- if gt (len .) 3 }}
      optional: true
      {{- end }}
{{- end }}

{{- define "presage.env.owner" -}}
{{- if .Values.database.cluster.enabled -}}
{{ include "presage.secret" (list "DATABASE_URL" (printf "%s-app" (include "presage.cluster" .)) "uri") }}
{{- else -}}
{{ include "presage.secret" (list "DATABASE_URL" .Values.secrets.owner "DATABASE_URL") }}
{{- end }}
{{ include "presage.secret" (list "PRESAGE_PIPELINE_DATABASE_URL" .Values.secrets.pipeline "DATABASE_URL") }}
{{ include "presage.secret" (list "PRESAGE_API_DATABASE_URL" .Values.secrets.api "DATABASE_URL") }}
{{ include "presage.secret" (list "PRESAGE_SITE_DATABASE_URL" .Values.secrets.site "DATABASE_URL") }}
{{- end }}

{{- define "presage.env.pipeline" -}}
{{ include "presage.secret" (list "DATABASE_URL" .Values.secrets.pipeline "DATABASE_URL") }}
{{- end }}

{{- define "presage.env.dagster" -}}
{{ include "presage.env.pipeline" . }}
{{ include "presage.secret" (list "DAGSTER_PG_URL" .Values.secrets.pipeline "DAGSTER_PG_URL") }}
{{- end }}

{{/* The key of Kalshi; its file is mounted by presage.pod. */}}
{{- define "presage.env.kalshi" -}}
{{ include "presage.secret" (list "PRESAGE_KALSHI_KEY_ID" .Values.secrets.kalshi "PRESAGE_KALSHI_KEY_ID") }}
- {name: PRESAGE_KALSHI_PRIVATE_KEY_FILE, value: /kalshi/key.pem}
{{- end }}

{{- define "presage.env.webhooks" -}}
{{ include "presage.secret" (list "PRESAGE_WEBHOOK_ENCRYPTION_KEYS" .Values.secrets.webhooks "PRESAGE_WEBHOOK_ENCRYPTION_KEYS") }}
{{- end }}

{{- define "presage.env.siteToken" -}}
{{ include "presage.secret" (list "PRESAGE_SITE_TOKEN" .Values.secrets.siteToken "PRESAGE_SITE_TOKEN") }}
{{- end }}

{{/* The data of the ConfigMap that every container reads. Whole numbers as such: templates print large ones as 1e+06. */}}
{{- define "presage.settings" -}}
{{- $given := dict -}}
{{- range $name, $value := .Values.settings -}}
{{- if and (kindIs "float64" $value) (eq (floor $value) $value) -}}
{{- $value = printf "%.0f" $value -}}
{{- end -}}
{{- $_ := set $given $name ($value | toString) -}}
{{- end -}}
{{- with .Values.public -}}
{{- if .apiUrl -}}{{- $_ := set $given "PRESAGE_PUBLIC_API_URL" .apiUrl -}}{{- end -}}
{{- if .siteUrl -}}{{- $_ := set $given "PRESAGE_PUBLIC_SITE_URL" .siteUrl -}}{{- end -}}
{{- $_ := set $given "PRESAGE_TRUSTED_PROXIES" .proxies -}}
{{- end -}}
{{- $_ := set $given "PRESAGE_LIVE_SHARDS" (int .Values.live.shards | toString) -}}
{{- $_ := set $given "PRESAGE_EXPORTS_DIR" "/exports" -}}
{{- if .Values.kalshi.enabled -}}{{- $_ := set $given "PRESAGE_EXCHANGES" "polymarket,kalshi" -}}{{- end -}}
{{ toYaml $given }}
{{- end }}

{{/* Combinations of values that cannot work. */}}
{{- define "presage.check" -}}
{{- $v := .Values -}}
{{- if gt (len .Release.Name) 40 -}}
{{- fail "the release's name has more than 40 characters, too many for names and labels made of it" -}}
{{- end -}}
{{- if and $v.kalshi.enabled (gt (len .Release.Name) 33) -}}
{{- fail "the release's name has more than 33 characters, too many for the names of Kalshi's feed made of it" -}}
{{- end -}}
{{- if and $v.database.cluster.enabled (not $v.database.cluster.image) -}}
{{- fail "database.cluster.image: name an image of PostgreSQL 17 with TimescaleDB that is built for CloudNativePG" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (not $v.database.cluster.enabled) (not $v.database.peers) -}}
{{- fail "database.peers: say where the database is, as peers of a NetworkPolicy, or set networkPolicy.enabled to false" -}}
{{- end -}}
{{- if eq (int $v.live.shards) (int $v.live.formerShards) -}}
{{- fail "live.formerShards is the number of shards before a change: 0 when there is none" -}}
{{- end -}}
{{- if and $v.public.ingress.enabled (not (and $v.public.apiUrl $v.public.siteUrl $v.public.ingress.tlsSecret $v.public.proxies)) -}}
{{- fail "public.ingress needs public.apiUrl, public.siteUrl, public.proxies and public.ingress.tlsSecret: without public.proxies all users count as one address" -}}
{{- end -}}
{{- if and $v.public.ingress.enabled $v.networkPolicy.enabled (not $v.public.proxyPeers) -}}
{{- fail "public.proxyPeers: say where the ingress controller is, as peers of a NetworkPolicy" -}}
{{- end -}}
{{- if and $v.monitoring.enabled (not $v.monitoring.readers) -}}
{{- fail "monitoring.readers: say by its networks who may read /metrics, such as the network of the cluster's pods" -}}
{{- end -}}
{{- if and $v.monitoring.enabled $v.networkPolicy.enabled (not $v.monitoring.peers) -}}
{{- fail "monitoring.peers: say where Prometheus is, as peers of a NetworkPolicy" -}}
{{- end -}}
{{- end }}
