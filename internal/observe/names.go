package observe

import (
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// systemAttributes returns the attributes that name the messaging system. The semantic
// conventions 1.45 rename messaging.system to messaging.system.name, with another value.
// OpenTelemetry's Go module ends at 1.43. As the conventions demand of such a change, the
// variable OTEL_SEMCONV_STABILITY_OPT_IN, a list with commas, selects the names: the new
// one with "messaging", both with "messaging/dup".
func systemAttributes() []attribute.KeyValue {
	both := []attribute.KeyValue{semconv.MessagingSystemAWSSQS, attribute.String("messaging.system.name", "aws.sqs")}
	chosen := both[:1]
	for name := range strings.SplitSeq(os.Getenv("OTEL_SEMCONV_STABILITY_OPT_IN"), ",") {
		switch strings.TrimSpace(name) {
		case "messaging/dup":
			return both
		case "messaging":
			chosen = both[1:]
		}
	}
	return chosen
}
