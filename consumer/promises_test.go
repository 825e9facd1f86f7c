package consumer_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// promises lists what the guides promise, by page, each with the tests that hold it. A text
// without a test is a fact of AWS or an explanation.
var promises = map[string][]struct{ text, tests string }{
	"receive.md": {
		{"handled after every earlier message of the group was deleted, parked or skipped", "TestConformance TestSimulation TestLaterWaitsForDelete"},
		{"groups are handled concurrently", "TestConformance"},
		{"`ActionPark` (send to a parking queue, the group continues)", "TestPark TestTrap"},
		{"`ActionBlock` (the group waits for an operator)", "TestBlock TestBlockedGroupStaysBlocked"},
		{"`ActionSkip` (delete). There is no default.", "TestSkip TestConfigErrors"},
		{"Without `Store`, yes. With `Store` and `GuaranteeAtLeastOnce`, only after a crash between effect and record. With `GuaranteeAtMostOnce`, no", "TestCrashAfterEffect TestSimulation"},
		{"With `HandleTx`, an effect happens once.", "TestSimulation TestKilledConsumers"},
		{"`JSON` reads a body without an envelope, `SNS` a notification around either", "TestBodies TestNotificationAdvice"},
		{"returns the same `EventSource` and `DedupeKey` for both", "TestNotificationIsDuplicate"},
		{"| nil | the message is deleted |", "TestConformance"},
		{"| an error, a panic | another attempt after a back-off; after `Failure.Attempts` attempts, `Failure.Action` |", "TestRetryInHand TestTrap TestPanic"},
		{"| `Permanent(err)` | `Failure.Action` at once |", "TestPark"},
		{"| `NotDone(err)` | another attempt; no effect happened |", "TestOwnBackoff"},
		{"| `Defer(err, d)` | another attempt after d, which counts as none |", "TestDefer TestHoldIsOfOneMessage"},
		{"| `MaybeDone(err)` | with `GuaranteeAtMostOnce` the message is probed, or `Failure.Unresolved` applies |", "TestUnresolved TestCrashAfterEffect"},
		{"The context of a call ends after `Timeout`, which counts as a failed attempt", "TestTimeout"},
		{"The failed calls for one message together may take `MaxHold`, by default 15 minutes.", "TestHeldTooLong TestHoldIsOfOneMessage"},
		{"if this process receives them again, the count of attempts goes on", "TestTimeout"},
		{"`Failure.Backoff` replaces the random back-off.", "TestOwnBackoff"},
		{"A blocked group is not handled again in this process until `Retry` or `ParkHead`.", "TestBlockedGroupStaysBlocked TestParkHead"},
		{"`Preflight` warns about less, and refuses `ActionBlock` beside a redrive policy.", "TestPreflight"},
		{"A receive count alone neither deletes nor parks a message.", "TestHighReceiveCounts TestShutdownsAreNoFailures TestSimulation"},
		{"`Failure.Deliveries` limits the deliveries of a message whose handler kills its process.", "TestCrashLoop"},
		{"It is off unless set, and `ActionSkip` excludes it", "TestCrashLoop TestConfigErrors"},
		{"an event of another organization blocks its group, whatever the `Action` says", "TestOtherOrganization"},
		{"The parking queue is a FIFO queue and should keep messages longer than the queue.", "TestPreflight"},
		{"The consumer needs `sqs:ReceiveMessage`, `sqs:DeleteMessage`, `sqs:ChangeMessageVisibility` and `sqs:GetQueueAttributes`", "TestQueueFitsBothSides"},
		{"`Stats` and the instruments `sqs_fifo.consumer.*` count.", "TestStats TestTelemetry"},
		{"`Blocked` lists the groups whose heads fail, with key, attempts and cause", "TestBlock TestBlockedGroupStaysBlocked"},
		{"`Retry` of an unresolved message needs an outcome in the store first", "TestRetryUnresolved"},
		{"`WaitIdle` waits for a time in which no message arrived, none was in hand except of blocked groups, and no receive failed.", "TestWaitIdle TestReceiveOutage"},
		{"`Health` returns an error if the last receive failed", "TestReceiveOutage"},
		{"if SQS refuses receives for a minute, `Run` ends with a `DeniedError`", "TestVanishedQueue"},
		{"A message without a MessageGroupId, as some emulators return it, ends `Run` with a `QueueError`.", "TestMessageWithoutGroup"},
		{"`Stats.NoRoom`, `Blocked` and the log say that blocked groups fill the memory of the consumer.", "TestNoRoom"},
		{"`Pause` stops receiving.", "TestPause"},
		{"`Run` returns after its context ended, within `Config.Shutdown`, and lists unfinished messages in a `ShutdownError`.", "TestShutdown TestShutdownWithStuckHandlers"},
		{"sends the messages of a parking queue or a dead-letter queue again, in the order of their groups, and deletes each one after its copy was acknowledged", "TestRunQueue TestRunQueueContinues"},
		{"`consumertest.TestConsumer` checks any consumer on virtual time", "TestBrokenConsumers TestImpatientConsumer TestDeafConsumer"},
	},
	"lambda-consumers.md": {
		{"The types have the JSON form of Lambda's events", "TestEndToEnd"},
		{"Groups of a batch run concurrently, each in order. A group stops at its first failure, and the other groups continue.", "TestAllPatterns"},
		{"`batchItemFailures` names the failed message and the later messages of its group, and no other message.", "TestAllPatterns"},
		{"Without it Lambda ignores the answer and deletes all messages.", ""},
		{"up to 10; a FIFO queue has no batching window", ""},
		{"below the visibility timeout of the queue; AWS recommends a sixth", ""},
		{"each failure of a message is a receive of all later messages of its group in the batch", ""},
		{"failed messages return after `Options.RetryAfter`", "TestEndToEnd TestManyRecords"},
		{"`Failure.Attempts`, `Failure.Action` and the parking queue are unused", "TestEndToEnd"},
		{"a duplicate is answered as a success without a call of the handler", "TestEndToEnd"},
		{"The contexts of the handlers end `Options.Margin` before the deadline of the invocation (default: the larger of 1 s and 5 %)", "TestMargin"},
		{"The answer comes before the deadline, also if a handler ignores its context, and names what is not done", "TestHangingPatterns"},
		{"`Timeout` of the consumer, by default 5 minutes, bounds each call of the handler also here.", "TestAttemptTimeout"},
		{"The claim in the store is extended while the handler runs.", "TestLongAttemptWithStore"},
		{"On a standard queue, also one with group IDs, each message stands alone.", "TestStandardQueue"},
	},
	"queue.md": {
		{"The type of a queue is fixed.", ""},
		{"This producer refuses such a resend within the interval.", "TestKeyThatMovesBetweenGroupsIsRefused"},
		{"If `ContentBasedDeduplication` must stay off, set `Deduplication: sqsfifo.DeduplicationExplicit`.", "TestQueueWithoutContentBasedDeduplication"},
		{"Its queue passes the `Preflight` of a producer and of a consumer", "TestQueueFitsBothSides"},
		{"Without the module, copy its queues", "TestGuideShowsTheModule"},
		{"`Preflight` reads the attributes and reports every problem.", "TestPreflight TestTheCLIsQueueIsFit"},
		{"reports the queue's behaviour, independent of its attributes", "TestScripts"},
		{"The producer needs the first statement, the consumer the others.", "TestQueueFitsBothSides"},
		{"without the permission that check is skipped", "TestQueueThatTellsNothing"},
		{"SSE-SQS (`SqsManagedSseEnabled`) needs no permissions.", ""},
		{"An event that KMS refuses is \"not stored\" with SQS's error code.", "TestFinalRefusals"},
		{"SQS reuses a data key for `KmsDataKeyReusePeriodSeconds` (300 by default).", ""},
		{"Encryption does not change deduplication: SQS hashes the plain body.", ""},
	},
}

// Each table row, list item and paragraph of the guides has an entry in promises, each entry
// is in its page, and each test exists.
func TestPromises(t *testing.T) {
	tests := map[string]bool{}
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "../docs/guide/*_test.go", "../replay/*_test.go", "../lab/sqlstoretest/*_test.go", "../lab/terraform/*_test.go", "../internal/producertest/*/*_test.go", "../cmd/sqsfifo/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(source, -1) {
				tests[string(m[1])] = true
			}
		}
	}
	for page, list := range promises {
		found := make([]bool, len(list))
		for _, part := range partsOf(t, "../docs/guide/"+page) {
			covered := false
			for i, p := range list {
				if strings.Contains(part, p.text) {
					found[i], covered = true, true
				}
			}
			assert.True(t, covered, "%s: no promise is listed for: %s", page, part)
		}
		for i, p := range list {
			assert.True(t, found[i], "%s does not have: %s", page, p.text)
			for _, name := range strings.Fields(p.tests) {
				assert.True(t, tests[name], "%s: no test %s", page, name)
			}
		}
	}
}

// partsOf returns the table rows, list items and paragraphs of a page, each on one line. It
// leaves out code, headings and the heads of tables.
func partsOf(t *testing.T, file string) (parts []string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	plain := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "\n\n")
	plain = regexp.MustCompile(`(?m)^\|.*\|\n\|[-|]+\|$`).ReplaceAllString(plain, "")
	plain = regexp.MustCompile(`(?m)^(\||- )`).ReplaceAllString(plain, "\n$1")
	for part := range strings.SplitSeq(plain, "\n\n") {
		if part = strings.Join(strings.Fields(part), " "); part != "" && !strings.HasPrefix(part, "#") {
			parts = append(parts, part)
		}
	}
	return parts
}
