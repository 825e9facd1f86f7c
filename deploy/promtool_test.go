package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A check is the expected state of one alert at one time.
type check struct {
	at, alert string
	fires     map[string]string // labels of the firing alert, except severity; nil if the alert must not fire
}

// A ruleTest has a list of input series and a list of checks. The series are in promtool's
// notation, with one value a minute.
type ruleTest struct {
	name   string
	series [][2]string
	checks []check
}

var here = map[string]string{q: "q.fifo"}

func at(metric, labels string) string {
	if labels != "" {
		labels = "," + labels
	}
	return metric + `{` + q + `="q.fifo"` + labels + `}`
}

func labelled(more ...string) map[string]string {
	out := map[string]string{q: "q.fifo"}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

const (
	inTime    = `sqs_fifo_outcome="stored",le="10"`
	durations = "sqs_fifo_producer_event_duration_seconds_"
	queueName = `{queue_name="q.fifo"}`
)

var ruleTestTable = []ruleTest{
	{"the first collision of a series that began at 0", [][2]string{{at("sqs_fifo_dedupe_collisions_detected_total", `sqs_fifo_collision_kind="conflict"`), "0x20 1x30"}}, []check{
		{"15m", "SqsFifoCollision", nil}, {"22m", "SqsFifoCollision", labelled("sqs_fifo_collision_kind", "conflict")}, {"40m", "SqsFifoCollision", nil},
	}},
	{"the first collision of a process that began with it", [][2]string{{at("sqs_fifo_dedupe_collisions_detected_total", `sqs_fifo_collision_kind="drift"`), "_x20 1x30"}}, []check{
		{"15m", "SqsFifoCollision", nil}, {"22m", "SqsFifoCollision", labelled("sqs_fifo_collision_kind", "drift")}, {"40m", "SqsFifoCollision", nil},
	}},
	{"an event in doubt", [][2]string{{at("sqs_fifo_producer_outcomes_total", `sqs_fifo_outcome="in_doubt"`), "0x10 1x20"}, {at("sqs_fifo_producer_outcomes_total", `sqs_fifo_outcome="not_stored"`), "0+1x30"}}, []check{
		{"9m", "SqsFifoEventsInDoubt", nil}, {"12m", "SqsFifoEventsInDoubt", labelled("sqs_fifo_outcome", "in_doubt")}, {"20m", "SqsFifoEventsInDoubt", nil},
	}},
	{"a closed producer: the counter goes on", [][2]string{{at("sqs_fifo_producer_outcomes_total", `sqs_fifo_outcome="in_doubt"`), "6x40"}}, []check{
		{"12m", "SqsFifoEventsInDoubt", nil}, {"30m", "SqsFifoEventsInDoubt", nil},
	}},
	{"a restarted process: the counter begins again at 0", [][2]string{{at("sqs_fifo_producer_outcomes_total", `sqs_fifo_outcome="in_doubt"`), "6x20 0x20"}}, []check{{"22m", "SqsFifoEventsInDoubt", nil}, {"25m", "SqsFifoEventsInDoubt", nil}}},
	{"a fast burn: one event in twenty is late", [][2]string{{at(durations+"bucket", inTime), "0+600x20 12000+570x100"}, {at(durations+"count", `sqs_fifo_outcome="stored"`), "0+600x120"}}, []check{
		{"19m", "SqsFifoErrorBudgetFast", nil}, {"60m", "SqsFifoErrorBudgetFast", here},
	}},
	{"a fast burn: events fail, and later no more", [][2]string{
		{at(durations+"bucket", inTime), "0+570x60 34200+600x60"}, {at(durations+"count", `sqs_fifo_outcome="stored"`), "0+570x60 34200+600x60"}, {at(durations+"count", `sqs_fifo_outcome="not_stored"`), "0+30x60 1800x60"},
	}, []check{{"59m", "SqsFifoErrorBudgetFast", here}, {"70m", "SqsFifoErrorBudgetFast", nil}}},
	{"a slow burn", [][2]string{{at(durations+"bucket", inTime), "0+594x500"}, {at(durations+"count", `sqs_fifo_outcome="stored"`), "0+600x500"}}, []check{
		{"400m", "SqsFifoErrorBudgetSlow", here}, {"400m", "SqsFifoErrorBudgetFast", nil},
	}},
	{"no events at all", [][2]string{{at(durations+"bucket", inTime), "5x100"}, {at(durations+"count", `sqs_fifo_outcome="stored"`), "5x100"}}, []check{{"90m", "SqsFifoErrorBudgetFast", nil}, {"90m", "SqsFifoErrorBudgetSlow", nil}}},
	{"an outage", [][2]string{{at("sqs_fifo_producer_oldest_event_age_seconds", ""), "0 60 120 200 260 0x10"}}, []check{{"2m", "SqsFifoOldestEvent", nil}, {"4m", "SqsFifoOldestEvent", here}, {"6m", "SqsFifoOldestEvent", nil}}},
	{"a paused group", [][2]string{{at("sqs_fifo_producer_oldest_pause_age_seconds", ""), "0+60x20 0x5"}}, []check{{"10m", "SqsFifoGroupPaused", nil}, {"11m", "SqsFifoGroupPaused", here}, {"22m", "SqsFifoGroupPaused", nil}}},
	{"throttles that delay, and those that do not", [][2]string{{at("sqs_fifo_producer_throttles_total", ""), "0+6x60"}, {at("sqs_fifo_producer_oldest_event_age_seconds", ""), "1x20 15x20 1x20"}}, []check{
		{"19m", "SqsFifoThrottled", nil}, {"35m", "SqsFifoThrottled", here}, {"50m", "SqsFifoThrottled", nil},
	}},
	{"blocked callers", [][2]string{{at("sqs_fifo_producer_caller_blocked", ""), "0x5 3x20 0x5"}}, []check{{"10m", "SqsFifoCallersBlocked", nil}, {"17m", "SqsFifoCallersBlocked", here}, {"28m", "SqsFifoCallersBlocked", nil}}},
	{"a full memory, and one without a limit", [][2]string{{at("sqs_fifo_producer_key_remembered", ""), "95x20"}, {at("sqs_fifo_producer_key_limit", ""), "100x20"}, {`sqs_fifo_producer_key_remembered{` + q + `="free.fifo"}`, "95x20"}}, []check{{"2m", "SqsFifoMemoryNearLimit", nil}, {"8m", "SqsFifoMemoryNearLimit", here}}},
	{"a clock that is late", [][2]string{{at("sqs_fifo_producer_clock_skew_seconds", ""), "0x5 -7x20 0x5"}}, []check{{"4m", "SqsFifoClockSkew", nil}, {"17m", "SqsFifoClockSkew", here}, {"28m", "SqsFifoClockSkew", nil}}},
	{"a violation", [][2]string{{at("sqs_fifo_producer_violations_total", `sqs_fifo_rule_id="SF001",sqs_fifo_action="reject"`), "0x5 1x30"}, {at("sqs_fifo_producer_violations_total", `sqs_fifo_rule_id="SF053",sqs_fifo_action="warn"`), "0x5 1x30"}}, []check{
		{"7m", "SqsFifoViolations", labelled("sqs_fifo_rule_id", "SF001")}, {"30m", "SqsFifoViolations", nil},
	}},
	{"a sink that fails", [][2]string{{at("sqs_fifo_provenance_dropped_total", ""), "0x5 4x30"}}, []check{{"4m", "SqsFifoProvenanceDropped", nil}, {"7m", "SqsFifoProvenanceDropped", here}, {"30m", "SqsFifoProvenanceDropped", nil}}},
	{"a store that fails", [][2]string{{at("sqs_fifo_producer_store_errors_total", ""), "0x5 0+10x20 200x20"}}, []check{{"4m", "SqsFifoStoreFails", nil}, {"20m", "SqsFifoStoreFails", here}, {"40m", "SqsFifoStoreFails", nil}}},
	{"a lost result", [][2]string{{at("sqs_fifo_producer_store_lost_total", ""), "0x5 1x30"}}, []check{{"4m", "SqsFifoStoreLost", nil}, {"7m", "SqsFifoStoreLost", here}, {"30m", "SqsFifoStoreLost", nil}}},
	{"an outbox that is late", [][2]string{{"sqs_fifo_outbox_message_late", "0x5 2x10 0x5"}, {"sqs_fifo_outbox_oldest_age_seconds", "0x5 0+60x10 0x5"}, {"sqs_fifo_outbox_group_stopped", "0x5 1x15 0x5"}}, []check{
		{"4m", "SqsFifoOutboxLate", nil},
		{"7m", "SqsFifoOutboxLate", map[string]string{}},
		{"18m", "SqsFifoOutboxLate", nil},
		{"9m", "SqsFifoOutboxSlow", nil},
		{"15m", "SqsFifoOutboxSlow", map[string]string{}},
		{"20m", "SqsFifoOutboxSlow", nil},
		{"9m", "SqsFifoOutboxStopped", nil},
		{"18m", "SqsFifoOutboxStopped", map[string]string{}},
		{"24m", "SqsFifoOutboxStopped", nil},
	}},
	{"a blocked group of a consumer", [][2]string{{at("sqs_fifo_consumer_group_blocked", ""), "0x5 1x20 0x5"}}, []check{{"9m", "SqsFifoConsumerBlocked", nil}, {"17m", "SqsFifoConsumerBlocked", here}, {"28m", "SqsFifoConsumerBlocked", nil}}},
	{"a blocked queue, and a busy one", [][2]string{
		{"aws_sqs_approximate_age_of_oldest_message_maximum" + queueName, "1000x20 0x5"},
		{"aws_sqs_approximate_number_of_groups_with_inflight_messages_maximum" + queueName, "1x25"},
		{`aws_sqs_approximate_age_of_oldest_message_maximum{queue_name="busy.fifo"}`, "1000x25"},
		{`aws_sqs_approximate_number_of_groups_with_inflight_messages_maximum{queue_name="busy.fifo"}`, "40x25"},
	}, []check{{"2m", "SqsFifoQueueBlocked", nil}, {"10m", "SqsFifoQueueBlocked", map[string]string{"queue_name": "q.fifo"}}, {"23m", "SqsFifoQueueBlocked", nil}}},
	{"dead letters", [][2]string{{`aws_sqs_approximate_number_of_messages_visible_maximum{queue_name="q-dead.fifo"}`, "0x5 1x10 0x5"}, {`aws_sqs_approximate_number_of_messages_visible_maximum{queue_name="q.fifo"}`, "9x20"}}, []check{
		{"4m", "SqsFifoDeadLetters", nil}, {"10m", "SqsFifoDeadLetters", map[string]string{"queue_name": "q-dead.fifo"}}, {"19m", "SqsFifoDeadLetters", nil},
	}},
}

// ruleTests returns ruleTestTable as a test file of promtool.
func ruleTests(t *testing.T) string {
	t.Helper()
	byName := map[string]alert{}
	for _, a := range alerts {
		byName[a.name] = a
	}
	var b strings.Builder
	b.WriteString(head + "rule_files: [sqsfifo.rules.yml]\nevaluation_interval: 1m\ntests:\n")
	for _, c := range ruleTestTable {
		fmt.Fprintf(&b, "- name: %q\n  interval: 1m\n  input_series:\n", c.name)
		for _, s := range c.series {
			fmt.Fprintf(&b, "  - {series: '%s', values: '%s'}\n", s[0], s[1])
		}
		b.WriteString("  alert_rule_test:\n")
		for _, k := range c.checks {
			fmt.Fprintf(&b, "  - eval_time: %s\n    alertname: %s\n", k.at, k.alert)
			a, ok := byName[k.alert]
			require.True(t, ok, k.alert)
			if k.fires == nil {
				b.WriteString("    exp_alerts: []\n")
				continue
			}
			labels := []string{"severity: " + a.severity}
			for _, name := range []string{q, "queue_name", "sqs_fifo_collision_kind", "sqs_fifo_outcome", "sqs_fifo_rule_id"} {
				if value, ok := k.fires[name]; ok {
					labels = append(labels, name+": "+value)
				}
			}
			summary, url := a.annotations(k.fires)
			fmt.Fprintf(&b, "    exp_alerts:\n    - exp_labels: {%s}\n      exp_annotations:\n        summary: %q\n        runbook_url: %q\n", strings.Join(labels, ", "), summary, url)
		}
	}
	return b.String()
}

// For each alert, the table has a check with a firing alert and a check with a silent alert.
func TestEveryAlertIsTested(t *testing.T) {
	assert.GreaterOrEqual(t, len(ruleTestTable), 12)
	for _, a := range alerts {
		fires, silent := false, false
		for _, c := range ruleTestTable {
			for _, k := range c.checks {
				if k.alert == a.name {
					fires, silent = fires || k.fires != nil, silent || k.fires == nil
				}
			}
		}
		assert.True(t, fires, "%s never fires", a.name)
		assert.True(t, silent, "%s is never silent", a.name)
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian: apt-get install prometheus)")
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// promtool accepts the alert rules, and each test case of the rules passes.
func TestPromtool(t *testing.T) {
	promtool(t, "check", "rules", "prometheus/sqsfifo.rules.yml")
	promtool(t, "test", "rules", "prometheus/sqsfifo.tests.yml")
}

// promtool accepts each query of the dashboard.
func TestQueriesOfTheDashboard(t *testing.T) {
	values := strings.NewReplacer("$__rate_interval", "5m", "$job", ".+", "$instance", ".+", "$queue", ".+")
	var b strings.Builder
	b.WriteString("groups:\n- name: dashboard\n  rules:\n")
	n := 0
	for _, r := range rows {
		for _, p := range r.panels {
			for _, query := range p.queries {
				n++
				fmt.Fprintf(&b, "  - {record: panel_%d, expr: %q}\n", n, values.Replace(query.expr))
			}
		}
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	promtool(t, "check", "rules", file)
}
