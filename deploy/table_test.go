package deploy

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// The tables in this file define the panels of the Grafana dashboard, the Prometheus alerts
// and the CloudWatch alarms. generate_test.go makes the files for these programs from them.
// The tests of the alerts have their own table in promtool_test.go.

// q is the name of the label that holds a queue's name in the library's metrics.
const q = "messaging_destination_name"

// retriesEnd is the default end of an event's retries. With a store, the defaults leave 5 s
// less.
var retriesEnd = fmt.Sprintf("retries end %g s (with a store %g s) after the submission, or after SQS last stored or refused an event of the message group",
	window.RetryFor.Seconds(), window.RetryFor.Seconds()-5)

// A row is one row of panels in the dashboard.
type row struct {
	title  string
	panels []panel
}

// A panel of the dashboard shows the results of queries. Its description says how an
// operator should react.
type panel struct {
	title, unit, description string
	queries                  []query
	limit                    float64 // value of the limit line; 0 for no line
	stack, heatmap           bool
}

type query struct{ expr, legend string }

// libraryLabels matches the labels of the library's metrics, and cloudWatchLabels the
// labels of CloudWatch's metrics.
const (
	libraryLabels    = `{job=~"$job",instance=~"$instance",messaging_destination_name=~"$queue"}`
	cloudWatchLabels = `{queue_name=~"$queue"}`
	// outboxLabels is for the metrics of outboxes and replays, which have no queue name.
	outboxLabels = `{job=~"$job",instance=~"$instance"}`
)

// labelsAnd returns libraryLabels with the given label matchers added.
func labelsAnd(matchers string) string {
	return libraryLabels[:len(libraryLabels)-1] + "," + matchers + "}"
}

// sumRate returns a query for the rate of a counter, summed for each queue and for each
// label listed in the parameter `by`.
func sumRate(counter, matchers, by string) string {
	labels := q
	if by != "" {
		labels += ", " + by
	}
	return "sum by (" + labels + ") (rate(" + counter + matchers + "[$__rate_interval]))"
}

func worst(gauge string) string  { return "max by (" + q + ") (" + gauge + libraryLabels + ")" }
func amount(gauge string) string { return "sum by (" + q + ") (" + gauge + libraryLabels + ")" }

// shareInTime returns a query for the share of events that SQS stored or recognised as
// duplicates within ten seconds. Arguments are, for example, `{job="a"}` and "[5m]".
func shareInTime(matchers, timeRange string) string {
	good := matchers[:len(matchers)-1]
	if good != "{" {
		good += ","
	}
	good += `sqs_fifo_outcome=~"stored|duplicate",le=~"10(\\.0)?"}`
	if matchers == "{}" {
		matchers = ""
	}
	return "sum by (" + q + ") (rate(sqs_fifo_producer_event_duration_seconds_bucket" + good + timeRange + ")) / sum by (" + q + ") (rate(sqs_fifo_producer_event_duration_seconds_count" + matchers + timeRange + "))"
}

func quantiles(histogram string) []query {
	var out []query
	for _, p := range []string{"0.5", "0.95", "0.99"} {
		out = append(out, query{"histogram_quantile(" + p + ", sum by (" + q + ", le) (rate(" + histogram + "_bucket" + libraryLabels + "[$__rate_interval])))", "{{" + q + "}} " + p})
	}
	return out
}

var rows = []row{
	{"Is it fine?", []panel{
		{"Events in time", "percentunit", "Share of events stored or known as duplicates within 10 s. Below 99.9 %: open the panels of the row Traffic.", []query{{shareInTime(libraryLabels, "[$__rate_interval]"), "{{" + q + "}}"}}, 0.999, false, false},
		{"Oldest event", "s", "Age of the oldest event without an outcome. By default, " + retriesEnd + ". Above 180 s: check SQS and the network now.", []query{{worst("sqs_fifo_producer_oldest_event_age_seconds"), "{{" + q + "}}"}}, window.RetryFor.Seconds(), false, false},
		{"In doubt or altered", "short", "Events that may be stored. Resend the same bytes before ResendBefore, at most five minutes.", []query{{"sum by (" + q + ", sqs_fifo_outcome) (increase(sqs_fifo_producer_outcomes_total" + labelsAnd(`sqs_fifo_outcome=~"in_doubt|altered"`) + "[$__rate_interval]))", "{{" + q + "}} {{sqs_fifo_outcome}}"}}, 0, false, false},
		{"Paused groups", "short", "Groups whose events wait for a failed one. The log names the group. Resend the failed event, or call Resume.", []query{{amount("sqs_fifo_producer_group_paused"), "{{" + q + "}}"}, {sumRate("sqs_fifo_producer_pauses_total", libraryLabels, ""), "{{" + q + "}} pauses a second"}}, 0, false, false},
		{"Oldest pause", "s", "Age of the oldest pause. A pause in doubt ends within five minutes; another needs a person.", []query{{worst("sqs_fifo_producer_oldest_pause_age_seconds"), "{{" + q + "}}"}}, 600, false, false},
		{"Messages in the queue", "short", "CloudWatch. A growing queue has slow, blocked or missing consumers. In a dead-letter queue each message needs a decision.", []query{{"max by (queue_name) (aws_sqs_approximate_number_of_messages_visible_maximum" + cloudWatchLabels + ")", "{{queue_name}}"}}, 0, false, false},
	}},
	{"Traffic", []panel{
		{"Outcomes", "ops", "Events a second by outcome. For failures read error_type, then docs/guide/errors.md.", []query{{sumRate("sqs_fifo_producer_outcomes_total", libraryLabels, "sqs_fifo_outcome, error_type"), "{{" + q + "}} {{sqs_fifo_outcome}} {{error_type}}"}}, 0, true, false},
		{"Time of an event", "s", "From submission to outcome, with buffer, pacing and retries. If only this panel is slow, and not requests, look at throttles and the buffer.", quantiles("sqs_fifo_producer_event_duration_seconds"), 10, false, false},
		{"Time of a request", "s", "One request to SQS. If requests are slow, check the network and AWS's status page.", quantiles("messaging_client_operation_duration_seconds"), 0, false, false},
		{"Events a request", "short", "Near 10 is cheap. Near 1 with many events: few message groups, or OrderStrict; consider OrderRuns.", []query{{sumRate("messaging_client_sent_messages_total", libraryLabels, "") + " / " + sumRate("messaging_client_operation_duration_seconds_count", libraryLabels, ""), "{{" + q + "}}"}}, 10, false, false},
		{"Throttles and retries", "ops", "Throttles: ask for a higher quota, turn on high throughput, or spread message groups. The limit is the pace that throttles left.", []query{
			{sumRate("sqs_fifo_producer_throttles_total", libraryLabels, ""), "{{" + q + "}} throttles"}, {sumRate("sqs_fifo_producer_retries_total", libraryLabels, ""), "{{" + q + "}} retries"}, {amount("sqs_fifo_producer_rate_limit"), "{{" + q + "}} limit"},
		}, 0, false, false},
		{"Buffer", "percentunit", "Used share of events, bytes and requests. At 1 callers wait: SQS is slow, or the program sends more than it can.", []query{
			{amount("sqs_fifo_producer_event_pending") + " / " + amount("sqs_fifo_producer_event_limit"), "{{" + q + "}} events"},
			{amount("sqs_fifo_producer_buffer_usage_bytes") + " / " + amount("sqs_fifo_producer_buffer_limit_bytes"), "{{" + q + "}} bytes"},
			{amount("sqs_fifo_producer_request_active") + " / " + amount("sqs_fifo_producer_request_limit"), "{{" + q + "}} requests"},
		}, 1, false, false},
		{"Blocked callers", "short", "Calls that wait for room in the buffer. Raise Delivery.BufferEvents or InFlight, or slow the source down.", []query{{amount("sqs_fifo_producer_caller_blocked"), "{{" + q + "}}"}, {sumRate("sqs_fifo_producer_waits_total", libraryLabels, ""), "{{" + q + "}} waits a second"}}, 0, false, false},
		{"Clock skew", "s", "SQS's clock ahead of this machine's. Beyond 5 s ResendBefore is wrong: repair NTP.", []query{{worst("sqs_fifo_producer_clock_skew_seconds"), "{{" + q + "}}"}}, 5, false, false},
	}},
	{"Deduplication", []panel{
		{"Duplicates that no producer saw", "short", "CloudWatch's suppressed messages less our window hits. Above 0: another program, or a process before its restart, sent the same bodies.", []query{{"sum by (queue_name) (aws_sqs_number_of_deduplicated_sent_messages_sum" + cloudWatchLabels + ") - sum by (queue_name) (label_replace(increase(sqs_fifo_dedupe_window_hits_total" + libraryLabels + `[5m]), "queue_name", "$1", "` + q + `", "(.*)"))`, "{{queue_name}}"}}, 0, false, false},
		{"Duplicates", "ops", "Duplicates that SQS or the store answered. replay=true is a resend; a rise without a replay is a source that repeats itself.", []query{
			{sumRate("sqs_fifo_dedupe_window_hits_total", libraryLabels, "sqs_fifo_replay"), "{{" + q + "}} SQS, replay {{sqs_fifo_replay}}"}, {sumRate("sqs_fifo_dedupe_store_hits_total", libraryLabels, ""), "{{" + q + "}} store"},
		}, 0, false, false},
		{"Collisions", "short", "One key or body for two events. conflict: correct Identify. drift: resend the stored bytes. attributes: put the difference into the body.", []query{{"sum by (" + q + ", sqs_fifo_collision_kind) (increase(sqs_fifo_dedupe_collisions_detected_total" + libraryLabels + "[$__rate_interval]))", "{{" + q + "}} {{sqs_fifo_collision_kind}}"}}, 0, false, false},
		{"Violations", "short", "Findings by rule. `sqsfifo explain SF001` or docs/rules.md has the way out for each.", []query{{"sum by (" + q + ", sqs_fifo_rule_id, sqs_fifo_action) (increase(sqs_fifo_producer_violations_total" + libraryLabels + "[$__rate_interval])) > 0", "{{" + q + "}} {{sqs_fifo_rule_id}} {{sqs_fifo_action}}"}}, 0, false, false},
		{"Keys in memory", "short", "Dedupe keys of the last five minutes. At the limit events fail with ErrMemoryFull: raise Delivery.Memory.MaxKeys.", []query{{amount("sqs_fifo_producer_key_remembered"), "{{" + q + "}}"}, {amount("sqs_fifo_producer_key_limit"), "{{" + q + "}} limit"}}, 0, false, false},
		{"Body length", "bytes", "Length of bodies. SQS takes 1 MiB with attributes; move larger payloads to S3.", []query{{"sum by (le) (increase(sqs_fifo_body_hash_length_bytes_bucket" + libraryLabels + "[$__rate_interval]))", "{{le}}"}}, 0, false, true},
		{"Lost provenance records", "short", "Records that the sink refused. Repair the sink; the events themselves are sent.", []query{{"sum by (" + q + ") (increase(sqs_fifo_provenance_dropped_total" + libraryLabels + "[$__rate_interval]))", "{{" + q + "}}"}}, 0, false, false},
	}},
	{"Beyond five minutes", []panel{
		{"Claims", "ops", "Answers of the store. unresolved: `sqsfifo keys list --unresolved`. full: purge, or enlarge the store. over_quota: resolve the keys of the scope. conflict: see collisions.", []query{{sumRate("sqs_fifo_producer_store_claims_total", libraryLabels, "sqs_fifo_decision"), "{{" + q + "}} {{sqs_fifo_decision}}"}}, 0, true, false},
		{"Store", "ops", "errors: repair the database, events wait. unclaimed: sent without memory. lost and unrecorded: run `sqsfifo keys list --unresolved`. stale and drifts: see docs/guide/store.md.", []query{
			{sumRate("sqs_fifo_producer_store_errors_total", libraryLabels, ""), "{{" + q + "}} errors"},
			{sumRate("sqs_fifo_producer_store_unclaimed_total", libraryLabels, ""), "{{" + q + "}} unclaimed"},
			{sumRate("sqs_fifo_producer_store_lost_total", libraryLabels, ""), "{{" + q + "}} lost"},
			{sumRate("sqs_fifo_producer_store_stale_total", libraryLabels, ""), "{{" + q + "}} stale"},
			{sumRate("sqs_fifo_producer_store_drifts_total", libraryLabels, ""), "{{" + q + "}} drifts"},
			{sumRate("sqs_fifo_producer_store_unrecorded_total", libraryLabels, ""), "{{" + q + "}} unrecorded"},
		}, 0, false, false},
		{"Results on their way to the store", "short", "A growing number: the store is slow. These results would be missing after a crash.", []query{{amount("sqs_fifo_producer_store_result_pending"), "{{" + q + "}}"}}, 0, false, false},
		{"Outbox", "short", "late: decide by `sqsfifo outbox stuck`. stopped: the relay's log has the reason. pending grows without both: no relay leads.", []query{
			{"max(sqs_fifo_outbox_message_pending" + outboxLabels + ")", "pending"},
			{"max(sqs_fifo_outbox_message_late" + outboxLabels + ")", "late"},
			{"max(sqs_fifo_outbox_group_stopped" + outboxLabels + ")", "stopped"},
			{"sum by (sqs_fifo_outcome) (rate(sqs_fifo_outbox_messages_total" + outboxLabels + "[$__rate_interval]))", "{{sqs_fifo_outcome}} a second"},
		}, 0, false, false},
		{"Age of the outbox", "s", "Age of the oldest message. Above 60 s: the relay is slow, stopped or missing.", []query{{"max(sqs_fifo_outbox_oldest_age_seconds" + outboxLabels + ")", "oldest"}}, 60, false, false},
		{"Replay", "ops", "Items of a replay. failed and unresolved items need a decision before the next run.", []query{{"sum by (sqs_fifo_outcome) (rate(sqs_fifo_replay_items_total" + outboxLabels + "[$__rate_interval]))", "{{sqs_fifo_outcome}}"}}, 0, true, false},
		{"Consumers", "ops", "Messages by outcome. parked and failed: the consumer's log has group and cause. lost: the handler takes longer than its lease.", []query{{sumRate("sqs_fifo_consumer_outcomes_total", libraryLabels, "sqs_fifo_outcome"), "{{" + q + "}} {{sqs_fifo_outcome}}"}, {sumRate("messaging_client_consumed_messages_total", libraryLabels, ""), "{{" + q + "}} received"}, {sumRate("sqs_fifo_consumer_receive_failed_total", libraryLabels, ""), "{{" + q + "}} failed receives"}}, 0, false, false},
		{"Groups of consumers", "short", "blocked: use Blocked, Retry or ParkHead. sleeping: a head waits for its next attempt.", []query{
			{amount("sqs_fifo_consumer_group_blocked"), "{{" + q + "}} blocked"}, {amount("sqs_fifo_consumer_group_sleeping"), "{{" + q + "}} sleeping"}, {amount("sqs_fifo_consumer_handler_running"), "{{" + q + "}} handlers"}, {amount("sqs_fifo_consumer_message_held"), "{{" + q + "}} messages in hand"},
		}, 0, false, false},
		{"Bytes in hand", "bytes", "Size of the messages that consumers hold. At the limit they receive no more: add handlers or consumers.", []query{{amount("sqs_fifo_consumer_buffer_usage_bytes"), "{{" + q + "}}"}}, 0, false, false},
		{"Time of consumers", "s", "Age of a head, age of an event at the end of its handling, and the time of a handler. Compare with your promise to users.", append([]query{
			{worst("sqs_fifo_consumer_oldest_head_age_seconds"), "{{" + q + "}} oldest head"},
			{"histogram_quantile(0.99, sum by (" + q + ", le) (rate(sqs_fifo_consumer_event_age_seconds_bucket" + libraryLabels + "[$__rate_interval])))", "{{" + q + "}} event age 0.99"},
		}, quantiles("messaging_process_duration_seconds")[2]), 0, false, false},
	}},
}

// An alert is one rule of Prometheus, with a section of the same name in the runbook.
type alert struct{ name, expr, after, severity, summary string }

// growth returns a query for counters that grew in the last period, such as "10m". The
// query also returns counters that did not exist a period ago, because Prometheus's
// function `increase` misses the first event of a new counter.
func growth(counter, matchers, by, period string) string {
	x := counter + matchers
	return "sum by (" + by + ") (increase(" + x + "[" + period + "])) > 0\nor sum by (" + by + ") (" + x + " unless " + x + " offset " + period + ") > 0"
}

func burn(rate, short, long string) string {
	return "1 - (" + shareInTime("{}", "["+short+"]") + ") > " + rate + " * 0.001\nand\n1 - (" + shareInTime("{}", "["+long+"]") + ") > " + rate + " * 0.001"
}

const on = "on {{ $labels." + q + " }}"

var alerts = []alert{
	{"SqsFifoCollision", growth("sqs_fifo_dedupe_collisions_detected_total", "", q+", sqs_fifo_collision_kind", "10m"), "", "ticket", "One dedupe key or body stands for two events " + on},
	{"SqsFifoEventsInDoubt", growth("sqs_fifo_producer_outcomes_total", `{sqs_fifo_outcome=~"in_doubt|altered"}`, q+", sqs_fifo_outcome", "5m"), "", "page", "Events may or may not be stored " + on + "; resend the same bytes within five minutes"},
	{"SqsFifoErrorBudgetFast", burn("14.4", "5m", "1h"), "2m", "page", "Events " + on + " fail or take longer than 10 s; the error budget of 30 days lasts two days"},
	{"SqsFifoErrorBudgetSlow", burn("6", "30m", "6h"), "15m", "ticket", "Events " + on + " fail or take longer than 10 s; the error budget of 30 days lasts five days"},
	{"SqsFifoOldestEvent", "max by (" + q + ") (sqs_fifo_producer_oldest_event_age_seconds) > 180", "", "page", "An event waits for more than 180 s " + on + "; by default, " + retriesEnd},
	{"SqsFifoGroupPaused", "max by (" + q + ") (sqs_fifo_producer_oldest_pause_age_seconds) > 600", "", "ticket", "A message group is paused for ten minutes " + on},
	{"SqsFifoThrottled", "sum by (" + q + ") (rate(sqs_fifo_producer_throttles_total[5m])) > 0\nand on (" + q + ") max by (" + q + ") (sqs_fifo_producer_oldest_event_age_seconds) > 10", "10m", "ticket", "SQS throttles and events wait " + on},
	{"SqsFifoCallersBlocked", "sum by (" + q + ") (sqs_fifo_producer_caller_blocked) > 0", "10m", "ticket", "Callers wait for room in the buffer " + on},
	{"SqsFifoMemoryNearLimit", "sum by (" + q + ") (sqs_fifo_producer_key_remembered) / sum by (" + q + ") (sqs_fifo_producer_key_limit) > 0.9", "5m", "ticket", "The memory of dedupe keys is nearly full " + on},
	{"SqsFifoClockSkew", "max by (" + q + ") (abs(sqs_fifo_producer_clock_skew_seconds)) > 5", "10m", "ticket", "The clock of a producer differs from SQS's by more than 5 s " + on},
	{"SqsFifoViolations", growth("sqs_fifo_producer_violations_total", `{sqs_fifo_action="reject"}`, q+", sqs_fifo_rule_id", "10m"), "", "ticket", "Events break rule {{ $labels.sqs_fifo_rule_id }} " + on},
	{"SqsFifoProvenanceDropped", growth("sqs_fifo_provenance_dropped_total", "", q, "10m"), "", "ticket", "Provenance records are lost " + on},
	{"SqsFifoStoreFails", "sum by (" + q + ") (rate(sqs_fifo_producer_store_errors_total[5m])) > 0", "5m", "page", "Calls of the store fail " + on + "; events wait"},
	{"SqsFifoStoreLost", growth("sqs_fifo_producer_store_lost_total", "", q, "10m"), "", "page", "Results are missing in the store " + on},
	{"SqsFifoOutboxLate", "max(sqs_fifo_outbox_message_late) > 0", "", "page", "Messages of the outbox wait for a decision"},
	{"SqsFifoOutboxSlow", "max(sqs_fifo_outbox_oldest_age_seconds) > 60", "5m", "ticket", "A message waits in the outbox for more than a minute"},
	{"SqsFifoOutboxStopped", "max(sqs_fifo_outbox_group_stopped) > 0", "10m", "ticket", "Message groups of the outbox wait because of a failure"},
	{"SqsFifoConsumerBlocked", "sum by (" + q + ") (sqs_fifo_consumer_group_blocked) > 0", "10m", "ticket", "Message groups wait for an operator " + on},
	{"SqsFifoQueueBlocked", "max by (queue_name) (aws_sqs_approximate_age_of_oldest_message_maximum) > 900\nand max by (queue_name) (aws_sqs_approximate_number_of_groups_with_inflight_messages_maximum) < 2", "5m", "ticket", "The oldest message of {{ $labels.queue_name }} is not handled"},
	{"SqsFifoDeadLetters", `max by (queue_name) (aws_sqs_approximate_number_of_messages_visible_maximum{queue_name=~".*-(dead|dlq)\\.fifo"}) > 0`, "1m", "ticket", "Messages are in {{ $labels.queue_name }}"},
}

// An alarm is an alarm of CloudWatch, for teams without Prometheus.
type alarm struct {
	name, metric, statistic, queue, comparison, description string
	threshold                                               float64
	periods                                                 int
}

var alarms = []alarm{
	{"OldestMessage", "ApproximateAgeOfOldestMessage", "Maximum", "QueueName", "GreaterThanThreshold", "A message waits for more than 15 minutes: see SqsFifoQueueBlocked.", 900, 2},
	{"DeadLetters", "ApproximateNumberOfMessagesVisible", "Maximum", "DeadLetterQueueName", "GreaterThanThreshold", "Messages are in the dead-letter queue: see SqsFifoDeadLetters.", 0, 1},
	{"InFlight", "ApproximateNumberOfMessagesNotVisible", "Maximum", "QueueName", "GreaterThanThreshold", "The queue nears SQS's limit of 120,000 messages in flight: consumers do not delete.", 100000, 1},
	{"Deduplicated", "NumberOfDeduplicatedSentMessages", "Sum", "QueueName", "GreaterThanThreshold", "SQS suppresses messages: compare with sqs_fifo.dedupe_window_hits.", 1000, 3},
}
