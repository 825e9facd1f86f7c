// Package deploy generates the Grafana dashboard, the Prometheus rules and the CloudWatch
// alarms of this folder from the tables in table_test.go, and checks them:
//
//	go test ./deploy -update
package deploy

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the generated files")

const runbook = "https://github.com/kansas-frontier-matrix/sqsfifo/blob/main/docs/guide/operating.md"

const head = "# Made from deploy/table_test.go by: go test ./deploy -update\n"

type object = map[string]any

// dashboard returns Grafana's JSON model.
func dashboard() object {
	datasource := object{"type": "prometheus", "uid": "$datasource"}
	var panels []any
	y, id := 0, 0
	for _, r := range rows {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []any{}, "gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}})
		y++
		for i, p := range r.panels {
			id++
			if i > 0 && i%3 == 0 {
				y += 8
			}
			panels = append(panels, p.model(id, object{"h": 8, "w": 8, "x": i % 3 * 8, "y": y}, datasource))
		}
		y += 8
	}
	variable := func(name, label, metric string) object {
		expr := "label_values(sqs_fifo_producer_event_limit{" + metric + "}, " + label + ")"
		return object{
			"name": name, "label": name, "type": "query", "datasource": datasource, "query": expr, "refresh": 2, "sort": 1,
			"multi": true, "includeAll": true, "allValue": ".+", "current": object{"text": "All", "value": "$__all"}, "hide": 0,
		}
	}
	return object{
		"uid": "sqsfifo", "title": "sqsfifo", "description": "Producers and consumers of SQS FIFO queues. The runbook: " + runbook,
		"tags": []string{"sqs", "sqsfifo"}, "editable": false, "schemaVersion": 39, "version": 1, "graphTooltip": 1, "refresh": "1m", "timezone": "utc",
		"time": object{"from": "now-3h", "to": "now"}, "links": []any{object{
			"title": "Runbook", "type": "link", "url": runbook, "icon": "doc", "targetBlank": true, "asDropdown": false, "includeVars": false, "keepTime": false, "tags": []string{}, "tooltip": "",
		}},
		"annotations": object{"list": []any{object{
			"name": "Replay", "enable": true, "hide": false, "iconColor": "blue", "datasource": datasource,
			"expr": "sum(rate(sqs_fifo_replay_items_total" + outboxLabels + "[$__rate_interval])) > 0",
		}}},
		"templating": object{"list": []any{
			object{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0, "current": object{"text": "", "value": ""}},
			variable("job", "job", ""), variable("instance", "instance", `job=~"$job"`), variable("queue", q, `job=~"$job"`),
		}},
		"panels": panels,
	}
}

func (p panel) model(id int, at, datasource object) object {
	var targets []any
	for i, query := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": datasource, "expr": query.expr, "legendFormat": query.legend}
		if p.heatmap {
			target["format"] = "heatmap"
		}
		targets = append(targets, target)
	}
	custom := object{"drawStyle": "line", "fillOpacity": 10, "showPoints": "never"}
	if p.stack {
		custom["stacking"] = object{"mode": "normal", "group": "A"}
	}
	defaults := object{"unit": p.unit, "custom": custom}
	if p.limit != 0 {
		custom["thresholdsStyle"] = object{"mode": "line"}
		defaults["thresholds"] = object{"mode": "absolute", "steps": []any{object{"color": "green", "value": nil}, object{"color": "red", "value": p.limit}}}
	}
	kind, options := "timeseries", object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}}, "tooltip": object{"mode": "multi", "sort": "desc"}}
	if p.heatmap {
		kind, options, defaults = "heatmap", object{"calculate": false, "yAxis": object{"unit": p.unit}, "color": object{"mode": "scheme", "scheme": "Oranges", "steps": 64}}, object{"unit": p.unit}
	}
	return object{
		"id": id, "type": kind, "title": p.title, "description": p.description, "datasource": datasource, "gridPos": at, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []any{}}, "options": options,
	}
}

// annotations returns the text of an alert and the address of its runbook. The values of
// `labels` replace the placeholders in the text; without labels, the placeholders stay.
func (a alert) annotations(labels map[string]string) (summary, url string) {
	summary = a.summary
	for name, value := range labels {
		summary = strings.ReplaceAll(summary, "{{ $labels."+name+" }}", value)
	}
	return summary, runbook + "#" + strings.ToLower(a.name)
}

// rules returns the rules in Prometheus's format.
func rules() string {
	var b strings.Builder
	b.WriteString(head + "groups:\n- name: sqsfifo\n  rules:\n")
	for _, a := range alerts {
		fmt.Fprintf(&b, "  - alert: %s\n    expr: |\n      %s\n", a.name, strings.ReplaceAll(a.expr, "\n", "\n      "))
		if a.after != "" {
			fmt.Fprintf(&b, "    for: %s\n", a.after)
		}
		summary, url := a.annotations(nil)
		fmt.Fprintf(&b, "    labels: {severity: %s}\n    annotations:\n      summary: %q\n      runbook_url: %q\n", a.severity, summary, url)
	}
	return b.String()
}

// cloudwatch returns a CloudFormation template with the CloudWatch alarms.
func cloudwatch() object {
	resources := object{}
	for _, a := range alarms {
		resources[a.name] = object{"Type": "AWS::CloudWatch::Alarm", "Properties": object{
			"AlarmDescription": a.description + " " + runbook, "Namespace": "AWS/SQS", "MetricName": a.metric, "Statistic": a.statistic,
			"Dimensions": []any{object{"Name": "QueueName", "Value": object{"Ref": a.queue}}},
			"Period":     300, "EvaluationPeriods": a.periods, "Threshold": a.threshold, "ComparisonOperator": a.comparison,
			// CloudWatch has no data points for a queue without traffic.
			"TreatMissingData": "notBreaching", "AlarmActions": []any{object{"Ref": "TopicArn"}}, "OKActions": []any{object{"Ref": "TopicArn"}},
		}}
	}
	parameter := func(text string) object { return object{"Type": "String", "Description": text} }
	return object{
		"AWSTemplateFormatVersion": "2010-09-09", "Description": "Alarms for one SQS FIFO queue",
		"Parameters": object{
			"QueueName": parameter("Name of the queue, with .fifo"), "DeadLetterQueueName": parameter("Name of its dead-letter queue, with .fifo"),
			"TopicArn": parameter("ARN of the SNS topic that hears of alarms"),
		},
		"Resources": resources,
	}
}

func indented(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	require.NoError(t, e.Encode(v))
	return b.String()
}

// The generated files are up to date with the tables in table_test.go and promtool_test.go.
func TestGenerated(t *testing.T) {
	for file, text := range map[string]string{
		"grafana/sqsfifo.json": indented(t, dashboard()), "cloudwatch/alarms.json": indented(t, cloudwatch()),
		"prometheus/sqsfifo.rules.yml": rules(), "prometheus/sqsfifo.tests.yml": ruleTests(t),
	} {
		if *update {
			require.NoError(t, os.MkdirAll(file[:strings.Index(file, "/")], 0o755))
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, text, string(have), "stale; run: go test ./deploy -update")
	}
}

var (
	documented = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| ([a-z ]+) \\| `([^`]*)` \\|")
	inExpr     = regexp.MustCompile(`\b(?:sqs_fifo|messaging|aws_sqs)_[a-z_]+\b`)
)

// metrics returns the Prometheus names of each OpenTelemetry instrument, from the table
// in dedup-metrics.md. A test of package kfm compares this table with the code.
func metrics(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/kfm/telemetry/dedup-metrics.md")
	require.NoError(t, err)
	out := map[string][]string{}
	for _, m := range documented.FindAllStringSubmatch(string(page), -1) {
		name := strings.ReplaceAll(m[1], ".", "_")
		if suffix := map[string]string{"s": "_seconds", "By": "_bytes"}[m[3]]; !strings.HasSuffix(name, suffix) {
			name += suffix
		}
		switch {
		case m[2] == "histogram":
			out[m[1]] = []string{name + "_bucket", name + "_count", name + "_sum"}
		case strings.HasSuffix(m[2], "counter") && !strings.Contains(m[2], "up down"):
			out[m[1]] = []string{name + "_total"}
		default:
			out[m[1]] = []string{name}
		}
	}
	require.Greater(t, len(out), 45)
	return out
}

// labels are label names that TestMetricsExist would mistake for names of metrics.
var labels = map[string]bool{q: true, "sqs_fifo_outcome": true, "sqs_fifo_replay": true, "sqs_fifo_decision": true, "sqs_fifo_action": true, "sqs_fifo_rule_id": true, "sqs_fifo_collision_kind": true, "sqs_fifo_event_source": true}

// fromCloudWatch are the metrics of AWS, as cloudwatch_exporter names them.
var fromCloudWatch = map[string]bool{
	"aws_sqs_approximate_number_of_messages_visible_maximum": true, "aws_sqs_number_of_deduplicated_sent_messages_sum": true,
	"aws_sqs_approximate_age_of_oldest_message_maximum": true, "aws_sqs_approximate_number_of_groups_with_inflight_messages_maximum": true,
}

// The queries of the dashboard, the alerts and the guide operating.md name only metrics
// that exist.
func TestMetricsExist(t *testing.T) {
	known := map[string]bool{}
	for _, names := range metrics(t) {
		for _, n := range names {
			known[n] = true
		}
	}
	check := func(where, expr string) {
		for _, name := range inExpr.FindAllString(expr, -1) {
			assert.True(t, known[name] || labels[name] || fromCloudWatch[name], "%s: there is no %s", where, name)
		}
	}
	for _, r := range rows {
		for _, p := range r.panels {
			for _, query := range p.queries {
				check(p.title, query.expr)
			}
		}
	}
	for _, a := range alerts {
		check(a.name, a.expr)
	}
	page, err := os.ReadFile("../docs/guide/operating.md")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^promtool query instant .*'(.*)'$`).FindAllStringSubmatch(string(page), -1) {
		check("operating.md", m[1])
	}
}

// exceptions are the instruments without a panel, with the reason.
var exceptions = map[string]string{}

// Each instrument is on a panel, or in the list of exceptions.
func TestEveryInstrumentIsOnAPanel(t *testing.T) {
	shown := map[string]bool{}
	for _, r := range rows {
		for _, p := range r.panels {
			for _, query := range p.queries {
				for _, name := range inExpr.FindAllString(query.expr, -1) {
					shown[name] = true
				}
			}
		}
	}
	for instrument, names := range metrics(t) {
		on := false
		for _, n := range names {
			on = on || shown[n]
		}
		assert.NotEqual(t, on, exceptions[instrument] != "", "%s: on a panel or with a reason, not both", instrument)
	}
}

// Each alert has a section in the runbook, and the runbook has no other alert.
func TestRunbook(t *testing.T) {
	page, err := os.ReadFile("../docs/guide/operating.md")
	require.NoError(t, err)
	sections := regexp.MustCompile(`(?m)^### (SqsFifo\w+)$`).FindAllStringSubmatch(string(page), -1)
	var named, have []string
	for _, m := range sections {
		named = append(named, m[1])
	}
	for _, a := range alerts {
		have = append(have, a.name)
	}
	assert.Equal(t, have, named, "in the order of the rules")
	assert.Contains(t, string(page), retriesEnd)
	for _, section := range strings.Split(string(page), "\n### ")[1:] {
		_, commands, _ := strings.Cut(section, "```sh\n")
		commands, _, _ = strings.Cut(commands, "```")
		assert.Equal(t, 3, strings.Count(commands, "\n"), "three commands: %s", section[:20])
		assert.Contains(t, section, "**Wake the producer's team:**", section[:20])
	}
}
