package lint_test

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// The unique key of the event is only in an attribute, and SQS does not hash attributes.
func ExampleCheck() {
	findings := lint.Check(lint.Message{
		Body: `{"dedupe_key":"landsat|p32r29","event_id":"019ae7b0-8c00-7abc-9def-0123456789ab",` +
			`"event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2025-12-04T00:00:00Z","payload":{}}`,
		Attributes: map[string]lint.Attribute{
			"unique_key":  {DataType: "String", StringValue: "landsat-2025-12-04T00:00Z"},
			"traceparent": {DataType: "String", StringValue: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		},
		GroupID: "p32r29",
	})
	for _, f := range findings {
		fmt.Println(f.Rule, f.Severity, f.Field)
		fmt.Println("fix:", f.Fix)
	}
	// Output:
	// SF001 error MessageAttributes["unique_key"]
	// fix: put the value into the body, as dedupe_key or a component of it, and keep the attribute only as a copy
}

// A finding about the body has an offset. A finding about one value of the body also
// has a JSON pointer.
func ExampleFinding_String() {
	findings := lint.Check(lint.Message{
		Body: `{"dedupe_key":"landsat|p32r29","event_id":"019ae7b0-8c00-7abc-9def-0123456789ab",` +
			`"event_source":"landsat-refresh","event_time":"2025-12-04T00:00:00Z","payload":{}}`,
		GroupID: "p32r29",
	})
	for _, f := range findings {
		fmt.Println(f)
	}
	// Output:
	// SF043 error: MessageBody /event_source (byte 96): event_source "landsat-refresh" does not have the form <organization>.<domain>.<pipeline>; fix: use a source such as kfm.remote-sensing.landsat-refresh
}

func ExampleRules() {
	for _, r := range lint.Rules()[:4] {
		fmt.Println(r.ID, r.Severity, r.Name)
	}
	// Output:
	// SF001 error attr-only-identity
	// SF002 error nondeterministic-dedup-id
	// SF003 error constant-dedup-id
	// SF004 warning constant-body
}

func ExampleLookup() {
	if r, ok := lint.Lookup("SF033"); ok {
		fmt.Println(r.Title)
		fmt.Println("source:", r.Source)
		fmt.Println("fix:", r.Fix)
	}
	// Output:
	// the body is not in canonical form
	// source: KFM v11.2.3, section 4; RFC 8785, section 3.2; F-024
	// fix: pass the body through canonicaljson.CanonicalizeStrict before it is stored or sent
}

func ExampleContract_CheckSource() {
	fmt.Println(len(lint.Contract{}.CheckSource("kfm.remote-sensing.landsat-refresh")))
	for _, f := range (lint.Contract{}).CheckSource("kfm.RemoteSensing.landsat") {
		fmt.Println(f.Message)
	}
	// Output:
	// 0
	// event_source "kfm.RemoteSensing.landsat" has the label "RemoteSensing", which has 'R'; use lower-case letters, digits and hyphens only
}

func ExampleCheckDedupeKey() {
	for _, f := range lint.CheckDedupeKey("") {
		fmt.Println(f.Rule, f.Message)
	}
	// Output:
	// SF045 dedupe_key is empty: it would not distinguish any two events
}

func ExampleCheckGroupID() {
	for _, f := range lint.CheckGroupID("path 28") {
		fmt.Println(f.Rule, f.Message)
	}
	// Output:
	// SF010 MessageGroupId "path 28" has ' ' at byte 4: only ASCII letters, digits and punctuation are allowed
}

func ExampleSize() {
	fmt.Println(lint.Size(lint.Message{
		Body:       `{"name":"Größe"}`,
		Attributes: map[string]lint.Attribute{"tag": {DataType: "String", StringValue: "one"}},
	}))
	// Output:
	// 30
}

func ExampleNeverIdentifies() {
	fmt.Println(lint.NeverIdentifies("traceparent"), lint.NeverIdentifies("unique_key"))
	// Output:
	// true false
}
