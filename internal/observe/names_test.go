package observe

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// OTEL_SEMCONV_STABILITY_OPT_IN selects the name of the messaging system, in all spans and
// metrics.
func TestNameOfTheSystem(t *testing.T) {
	const old, renamed = "messaging.system=aws_sqs", "messaging.system.name=aws.sqs"
	for optIn, want := range map[string][]string{
		"": {old}, "http": {old}, "messaging": {renamed}, "http, messaging": {renamed}, "messaging/dup": {old, renamed}, "messaging,messaging/dup": {old, renamed},
	} {
		t.Setenv("OTEL_SEMCONV_STABILITY_OPT_IN", optIn)
		var got []string
		for _, a := range requestAttributes("https://sqs.us-east-1.amazonaws.com/1/q.fifo") {
			if text := string(a.Key) + "=" + a.Value.AsString(); a.Value.Type() == attribute.STRING && (text == old || text == renamed) {
				got = append(got, text)
			}
		}
		assert.Equal(t, want, got, optIn)
	}
}

// The document names the version of the schema URL.
func TestDocumentNamesTheVersion(t *testing.T) {
	text, err := os.ReadFile("../../docs/kfm/telemetry/dedup-metrics.md")
	require.NoError(t, err)
	assert.Contains(t, string(text), "| schema URL "+strings.TrimPrefix(semconv.SchemaURL, "https://opentelemetry.io/schemas/")+" |")
}
