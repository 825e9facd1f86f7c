package flow

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each expression in names.go has examples of names that it matches and of names that
// it does not match.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		name    string
		re      *regexp.Regexp
		yes, no string
	}{
		{
			"idPackage", idPackage,
			"github.com/google/uuid example.com/guid go.jetify.com/ulid github.com/rs/xid shortuuid github.com/lucsky/cuid cuid2 short-uuid",
			"example.com/druid uuidgen example.com/id example.com/fluid taxid identity",
		},
		{"majorVersion", majorVersion, "a/v2 a/v17 gopkg.in/yaml.v3", "a/v a/vx a/v2beta a2"},
		{"clockName", clockName, "now Now clock time timeNow utcnow", "known times nowhere clocked"},
		{
			"mintName", mintName,
			"newID NewUUID generateEventID makeDedupId nextID random_id mintRequestID uuid idGen uuidSource idgenerator",
			"id eventID validID newOrder idOf uuidOf knowID renewed",
		},
		{"makerName", makerName, "NewBuffer next generate makeKey CreateToken mint randomly", "renew hash lookup keyOf"},
		{"DeadLetterName", DeadLetterName, "SendToDLQ dlqPublisher DeadLetters dead_letter redrive", "letter deadline Drive"},
		{"SettingsName", SettingsName, "Config options Settings producerConfig", "Order Event Con"},
		{"mutatorName", mutatorName, "PutUint64 Encode SetQuery Add MarshalTo", "Reset Input Get"},
		{"testTag", testTag, "test integration_aws aws.test e2e UnitTests e2e_tests", "latest contest attestation disintegration"},
		{"linkedName", linkedName, "Version gitCommit revision buildDate", "order id url"},
		{"pointerHelperName", pointerHelperName, "Ptr StringPtr ToString Of P ref Val FromInt pointerTo", "Lookup Get Hash next"},
		{"retryName", retryName, "Retry withRetry retryer.Do Backoff backoff.Do attempt Attempts", "Entry backoffice Country try"},
		{"hookName", hookName, "OnRetry AfterFailure BeforeAttempt", "Once Retry onRetry Only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name := range strings.FieldsSeq(c.yes) {
				assert.True(t, c.re.MatchString(name), name)
			}
			for name := range strings.FieldsSeq(c.no) {
				assert.False(t, c.re.MatchString(name), name)
			}
		})
	}
}
