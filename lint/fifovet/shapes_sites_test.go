package fifovet

import (
	"fmt"
	"slices"
	"strings"
)

// shape is a generated call site: a function that sends a message.
type shape struct {
	rule    string // ID of the rule to test
	wrong   bool   // the call site breaks the rule
	source  string
	carrier string
	sender  string
	limit   string // documented reason why the analyzer does not report the call site
	code    string // Go text of the function with the call site
}

// function returns the Go text of a call site: the given declarations, and a function with
// the given statements.
func function(decl, body string) string {
	if decl != "" {
		decl = strings.ReplaceAll(decl, "; func ", "\nfunc ") + "\n"
	}
	return decl + "func site$(ctx context.Context, e *order, m types.Message, tokens tokenSource, keys keyOf) error {\n" + body + "\n}\n"
}

// carry returns the code of the carrier c, with the expression of s in place of each "@".
// For example, "id := @" becomes "id := e.ID".
func carry(c carrier, s source) (decl, pre, expr string) {
	put := func(text string) string { return strings.ReplaceAll(text, "@", s.expr) }
	decl = s.decl
	if c.decl != "" {
		decl = strings.TrimPrefix(decl+"\n"+put(strings.ReplaceAll(c.decl, "; type ", "\ntype ")), "\n")
	}
	return decl, put(c.pre), put(c.expr)
}

func (s sender) attributeMap(name, expr string) string {
	kind, value := s.attributes, s.value
	if kind == "" {
		kind, value = v2Map, strings.TrimPrefix(v2Value, "types.MessageAttributeValue")
	}
	return fmt.Sprintf("%s{%q: %s}", kind, name, strings.ReplaceAll(value, "%s", expr))
}

const jsonOrder = `encode(e)`

// shapesOf generates the code for TestShapes: functions that send a message. Most come in
// pairs: the first function breaks a rule (wrong), and the second does not (right).
func shapesOf() []shape {
	var all []shape
	add := func(rule string, wrong bool, src source, c carrier, s sender, q queue, w surrounding, fields map[string]string, decl, pre string) {
		if _, ok := fields["url"]; !ok {
			fields["url"] = q.expr
		}
		limit := c.limit
		if limit == "" {
			limit = s.limit
		}
		all = append(all, shape{
			rule: rule, wrong: wrong, source: src.name, carrier: c.name, sender: s.name, limit: limit,
			code: function(strings.TrimSpace(decl+"\n"+strings.ReplaceAll(fill(s.decl, fields), "; type ", "\ntype ")), q.pre+pre+"\n"+w.before+fill(s.send, fields)+w.after),
		})
	}
	at := func(n int) (queue, surrounding) { return queues[n%len(queues)], surroundings[n%len(surroundings)] }
	certain := func(n int) queue { return queues[n%(len(queues)-1)] }

	n := 0
	for i, s := range senders {
		for j, c := range slices.Concat(carriers, partCarriers) {
			n++
			// The first call site breaks SF002: the deduplication ID does not depend on
			// the event.
			for k, src := range []source{mintedSources[(i+j)%len(mintedSources)], eventSources[(i+j)%len(eventSources)]} {
				q, w := at(n)
				decl, pre, expr := carry(c, src)
				add("SF002", k == 0, src, c, s, q, w, map[string]string{"body": jsonOrder, "group": "e.Account", "dedup": expr}, decl, pre)
			}
			if (i+j)%3 != 0 {
				continue
			}
			// The first call site breaks SF007: each message has a new group ID.
			for k, src := range []source{mintedSources[(i+j)%3], {name: "account", expr: "e.Account"}} {
				q, w := at(n + 1)
				if w.name == "in a literal" || w.name == "in a loop" {
					w = surroundings[0]
				}
				// Skip the group ID of a process, which is not random for each message.
				// Skip this sender, too: SF007 accepts one random group ID for a whole batch.
				if s.name == "v2 batch by append" || c.name == "local once value" {
					continue
				}
				decl, pre, expr := carry(c, src)
				add("SF007", k == 0, src, c, s, q, w, map[string]string{"body": jsonOrder, "group": expr, "dedup": "e.ID"}, decl, pre)
			}
			// The first call site breaks SF003: the deduplication ID is a constant.
			for k, src := range []source{{name: "constant", expr: `"refresh"`}, {name: "constant and field", expr: `"refresh-" + e.ID`}} {
				q, w := at(n + 2)
				// The code of the carrier "branch" chooses between two IDs. SF003 does not
				// report such a choice, even between constants.
				if c.name == "branch" || c.picked {
					continue
				}
				decl, pre, expr := carry(c, src)
				add("SF003", k == 0, src, c, s, q, w, map[string]string{"body": jsonOrder, "group": "e.Account", "dedup": expr}, decl, pre)
			}
		}
	}

	// The first call site breaks SF012: without a deduplication ID, SQS hashes the body,
	// and the body changes with each attempt.
	for i, s := range senders {
		for j, b := range bodies {
			n++
			c := carrier{name: b.name, limit: b.limit}
			for k, src := range []source{mintedSources[(i+j)%4], eventSources[(i+j)%len(eventSources)]} {
				if b.clock {
					src = source{name: "clock", expr: `time.Now()`}
					if k == 1 {
						src = source{name: "time of the event", expr: `e.At`}
					}
				}
				if b.fixed != "" && k == 0 {
					src = source{name: "order of a map"}
				}
				decl, pre, expr := carry(carrier{decl: b.decl, pre: b.pre, expr: b.expr}, src)
				if b.fixed != "" && k == 1 {
					src = source{name: "sorted"}
					decl, pre, expr = b.decl, "", b.fixed
				}
				fields := map[string]string{"body": expr, "group": "e.Account"}
				q := certain(n)
				add("SF012", k == 0, src, c, s, q, surroundings[n%len(surroundings)], fields, decl, pre)
			}
		}
		// The first call site breaks SF004: it has a constant body and no deduplication
		// ID.
		for k, src := range []source{{name: "constant", expr: `"{}"`}, {name: "field", expr: `e.ID`}} {
			c := carriers[(i+2)%20]
			decl, pre, expr := carry(c, src)
			add("SF004", k == 0, src, c, s, certain(i), surroundings[i%len(surroundings)], map[string]string{"body": expr, "group": "e.Account"}, decl, pre)
		}
		// The first call site breaks SF001: the event's ID is in an attribute, but not in
		// the body.
		for j, c := range carriers {
			if (i+j)%2 != 0 {
				continue
			}
			for k := range 2 {
				src := source{name: "field", expr: `e.ID`}
				decl, pre, expr := carry(c, src)
				body := `encode(e.Lines)`
				if k == 1 {
					body = jsonOrder
				}
				fields := map[string]string{"body": body, "group": "e.Account", "attributes": s.attributeMap("event_id", expr)}
				if s.name == "another package" {
					continue
				}
				add("SF001", k == 0, src, c, s, certain(n+j), surroundings[j%len(surroundings)], fields, decl, pre)
			}
		}
		// A call site breaks SF010 if SQS refuses a character in the deduplication ID.
		for _, v := range []struct {
			expr  string
			wrong bool
		}{{`"order " + e.ID`, true}, {`fmt.Sprintf("orders für %s", e.ID)`, true}, {`strings.Join([]string{"order", e.ID}, ", ")`, true}, {`"order-" + e.ID`, false}, {`fmt.Sprintf("%s.%s", e.Account, e.ID)`, false}, {`e.Account + e.At.String()`, true}, {`e.Account + e.At.Format(time.RFC3339)`, false}} {
			add("SF010", v.wrong, source{name: "fragment"}, carrier{name: "direct"}, s, queues[0], surroundings[i%len(surroundings)], map[string]string{"body": jsonOrder, "group": "e.Account", "dedup": v.expr}, "", "")
		}
		// The call site with a UUID breaks SF006: each retry creates a new deduplication ID.
		for j, r := range retryForms {
			for k, expr := range []string{`uuid.NewString()`, `e.ID`} {
				fields := map[string]string{"body": jsonOrder, "group": "e.Account", "dedup": expr, "url": "ordersURL"}
				send := fill(s.send, fields)
				code := strings.ReplaceAll(r.code, "@send", send)
				all = append(all, shape{
					rule: "SF006", wrong: k == 0, source: []string{"uuid", "field"}[k], carrier: r.name, sender: s.name, limit: s.limit,
					code: function(strings.TrimSpace(r.decl+"\n"+strings.ReplaceAll(fill(s.decl, fields), "; type ", "\ntype ")), code),
				})
				_ = j
			}
		}
		// A message without a group breaks SF009 if its queue is FIFO. A message with a
		// deduplication ID also breaks SF009 if its queue is unknown.
		for _, q := range append(queues, queue{name: "looked up standard", pre: `found, lookErr := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("orders")}); if lookErr != nil { return lookErr };`, expr: `*found.QueueUrl`}, queue{name: "standard", expr: `"https://sqs.eu-west-1.amazonaws.com/42/orders"`}) {
			for _, dedup := range []bool{true, false} {
				if s.name == "another package" {
					continue // the code of this sender always has a message group
				}
				fields := map[string]string{"body": jsonOrder}
				wrong := q.certain
				if dedup && (q.certain || q.name == "unknown") {
					fields["dedup"], wrong = "e.ID", true
				}
				add("SF009", wrong, source{name: "none"}, carrier{name: q.name}, s, q, surroundings[i%len(surroundings)], fields, "", "")
			}
		}
	}
	all = append(all, batchShapes()...)
	all = append(all, pairShapes()...)
	all = append(all, delayShapes()...)
	return all
}

// body is Go code for the body of a message. The placeholder "@" stands for a value in the
// body, such as time.Now().
type body struct {
	name, decl, pre, expr string

	// If `fixed` is not empty, it replaces the fields `pre` and expr in the second of two
	// call sites, which breaks no rule. Otherwise both call sites use `pre` and expr.
	fixed string

	clock bool // the placeholder "@" needs a time.Time
	limit string
}

var bodies = []body{
	{name: "text", expr: `"order " + e.ID + " " + @`},
	{name: "format", expr: `fmt.Sprintf("{\"id\":%q,\"note\":%q}", e.ID, @)`},
	{name: "JSON of a struct", decl: `type body$ struct{ ID string; Note string }`, expr: `encode(body${e.ID, @})`},
	{name: "JSON of a pointer", decl: `type body$ struct{ ID string; Note string }`, pre: `b := &body${ID: e.ID}; b.Note = @`, expr: `encode(b)`},
	{name: "JSON of a map", pre: `b := map[string]any{"id": e.ID, "note": @}`, expr: `encode(b)`},
	{name: "JSON by an encoder", pre: `var buf bytes.Buffer; if err := json.NewEncoder(&buf).Encode(map[string]string{"id": e.ID, "note": @}); err != nil { return err }`, expr: `buf.String()`},
	{name: "MarshalJSON", decl: `type body$ struct{ e *order; at time.Time }; func (b body$) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]any{"id": b.e.ID, "at": b.at}) }`, pre: `b := body${e, @}`, expr: `encode(b)`, clock: true},
	{name: "MarshalJSON with a clock", decl: `type body$ struct{ e *order }; func (b body$) MarshalJSON() ([]byte, error) { e := b.e; return json.Marshal(map[string]any{"id": e.ID, "at": @}) }`, pre: `b := body${e}`, expr: `encode(b)`, clock: true},
	{name: "String with a clock", decl: `type body$ struct{ e *order }; func (b body$) String() string { e := b.e; return e.ID + (@).Format(time.RFC3339Nano) }`, expr: `fmt.Sprint(body${e})`, clock: true},
	{name: "Fprintf of a String", decl: `type body$ struct{ e *order }; func (b *body$) String() string { e := b.e; return e.ID + (@).Format(time.RFC3339Nano) }`, pre: `var buf bytes.Buffer; fmt.Fprintf(&buf, "order %s", &body${e})`, expr: `buf.String()`, clock: true},
	{name: "protojson", pre: `b := &pb.Event{Id: e.ID, Note: @}; text, err := protojson.Marshal(b); if err != nil { return err }`, expr: `string(text)`},
	{name: "text/template", decl: `var page$ = template.Must(template.New("body").Parse("{{.}}"))`, pre: `var buf strings.Builder; if err := page$.Execute(&buf, map[string]string{"id": e.ID, "note": @}); err != nil { return err }`, expr: `buf.String()`},
	{name: "gob", pre: `var buf bytes.Buffer; if err := gob.NewEncoder(&buf).Encode(struct{ ID, Note string }{e.ID, @}); err != nil { return err }`, expr: `base64.StdEncoding.EncodeToString(buf.Bytes())`},
	{name: "setters", pre: `b := pb.New(); b.SetID(e.ID); b.SetNote(@)`, expr: `encode(b)`},
	{name: "method of the event", decl: `type body$ struct{ ID, Note string }; func (b *body$) Encode() (string, error) { text, err := json.Marshal(b); return string(text), err }`, pre: `b := &body${e.ID, @}; text, err := b.Encode(); if err != nil { return err }`, expr: `text`},
	{name: "encoder of an interface", decl: `type codec$ interface{ Encode$(v any) ([]byte, error) }; type jsonCodec$ struct{}; func (jsonCodec$) Encode$(v any) ([]byte, error) { return json.Marshal(v) }; func encode$(c codec$, v any) string { text, _ := c.Encode$(v); return string(text) }`, expr: `encode$(jsonCodec${}, map[string]string{"id": e.ID, "note": @})`},
	{name: "gob of a map", pre: `var buf bytes.Buffer; if err := gob.NewEncoder(&buf).Encode(e.Tags); err != nil { return err }`, expr: `buf.String()`, fixed: `string(must(json.Marshal(e.Tags)))`},
	{name: "range over a map", pre: `var b strings.Builder; for k, v := range e.Tags { b.WriteString(k + v) }`, expr: `b.String()`, fixed: `fmt.Sprint(e.Tags)`},
	{name: "%+v of a pointer", pre: `held := struct{ E *order }{e}`, expr: `fmt.Sprintf("%+v", held)`, fixed: `fmt.Sprintf("%+v", *e)`},
}

// retryForm is code for sending again after a failure.
type retryForm struct{ name, decl, code string }

var retryForms = []retryForm{
	{"loop", "", `var err error; for range 3 { if err = func() error { @send }(); err == nil { return nil } }; return err`},
	{"loop with a wait", "", `once := func() error { @send }; for try := 0; ; try++ { err := once(); if err == nil { return nil }; if try == 5 { return err }; time.Sleep(time.Second) }`},
	{"function that retries", ``, `return retry.Do(func() error { @send })`},
	{"function of the program", `func untilDone$(f func() error) error { var err error; for range 3 { if err = f(); err == nil { return nil } }; return err }`, `return untilDone$(func() error { @send })`},
}

// batchShapes returns call sites that send a batch. A call site breaks SF015 if it ignores
// the entries refused by SQS.
func batchShapes() []shape {
	var all []shape
	calls := []struct{ name, call string }{
		{"SendMessageBatch", `client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(ordersURL), Entries: e.entries()})`},
		{"SendMessageBatch by an interface", `batchAPI(client).SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(ordersURL), Entries: e.entries()})`},
		{"DeleteMessageBatch", `client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(ordersURL), Entries: e.receipts()})`},
		{"PublishBatch", `topic.PublishBatch(ctx, &sns.PublishBatchInput{TopicArn: aws.String(ordersURL), PublishBatchRequestEntries: e.published()})`},
		{"v1 SendMessageBatch", `older.SendMessageBatch(&sqs1.SendMessageBatchInput{QueueUrl: aws.String(ordersURL), Entries: e.olderEntries()})`},
		{"v1 with a context", `older.SendMessageBatchWithContext(ctx, &sqs1.SendMessageBatchInput{QueueUrl: aws.String(ordersURL), Entries: e.olderEntries()})`},
	}
	forms := []struct {
		name, code, decl string
		wrong            bool
	}{
		{"discarded", `_, err := @; return err`, "", true},
		{"not looked at", `out, err := @; if err != nil { return err }; log.Println(out); return nil`, "", false},
		{"only counted", `out, err := @; if err != nil { return err }; log.Println(len(out.Successful)); return nil`, "", true},
		{"statement", `@; return nil`, "", true},
		{"not named", `if _, err := @; err != nil { return err }; return nil`, "", true},
		{"retried for an error only", `for range 3 { if _, err := @; err == nil { return nil } }; return errors.New("failed")`, "", true},
		{"in a literal", `send := func() error { _, err := @; return err }; return send()`, "", true},
		{"in a goroutine", `go func() { _, _ = @ }(); return nil`, "", true},
		{"length", `out, err := @; if err == nil && len(out.Failed) > 0 { return errors.New("failed") }; return err`, "", false},
		{"range", `out, err := @; if err != nil { return err }; for _, f := range out.Failed { log.Println(*f.Id) }; return nil`, "", false},
		{"read after an error alone", `out, err := @; if err != nil { log.Println(out.Failed); return err }; return nil`, "", true},
		{"one condition", `out, err := @; if err != nil || len(out.Failed) > 0 { return errors.New("failed") }; return nil`, "", false},
		{"handed on", `out, err := @; if err != nil { return err }; return look$(out.Failed)`, "func look$[T any](failed []T) error { if len(failed) > 0 { return errors.New(\"failed\") }; return nil }", false},
		{"whole output handed on", `out, err := @; if err != nil { return err }; return look$(out)`, "func look$(out any) error { return fmt.Errorf(\"%v\", out) }", false},
		{"stored", `out, err := @; results$ = append(results$, out); return err`, "var results$ []any", false},
	}
	for _, c := range calls {
		for _, f := range forms {
			all = append(all, shape{rule: "SF015", wrong: f.wrong, source: "output", carrier: f.name, sender: c.name, code: function(f.decl, strings.ReplaceAll(f.code, "@", c.call))})
		}
	}
	return all
}

// pairShapes returns call sites with two sends. A call site breaks SF016 if it sends two
// different bodies with the same deduplication ID.
func pairShapes() []shape {
	var all []shape
	forms := []struct {
		name, first, second, a, b string
		wrong                     bool
	}{
		{"two literals", `encode(e)`, `encode(e.Lines)`, `e.ID`, `e.ID`, true},
		{"one variable", `"created " + e.ID`, `"paid " + e.ID`, `id`, `id`, true},
		{"one computation", `"created " + e.ID`, `"paid " + e.ID`, `e.Account + e.ID`, `e.Account + e.ID`, true},
		{"the same body", `encode(e)`, `encode(e)`, `id`, `id`, false},
		{"two IDs", `"created " + e.ID`, `"paid " + e.ID`, `id + "-created"`, `id + "-paid"`, false},
	}
	for _, s := range senders {
		if strings.Contains(s.name, "append") || s.name == "functional option" {
			continue
		}
		for _, f := range forms {
			one := map[string]string{"body": f.first, "dedup": f.a, "group": "e.Account", "url": "ordersURL"}
			two := map[string]string{"body": f.second, "dedup": f.b, "group": "e.Account", "url": "ordersURL"}
			var code string
			switch {
			case strings.HasPrefix(s.send, "return "):
				code = "id := e.ID; _ = id\nif err := " + strings.TrimPrefix(fill(s.send, one), "return ") + "; err != nil { return err }\n" + fill(s.send, two)
			case strings.HasSuffix(s.send, "; return err") && strings.HasPrefix(s.send, "_, err := "):
				code = "id := e.ID; _ = id\nif " + strings.TrimSuffix(fill(s.send, one), "; return err") + "; err != nil { return err }\n" + fill(s.send, two)
			default:
				continue
			}
			all = append(all, shape{rule: "SF016", wrong: f.wrong, source: "two bodies", carrier: f.name, sender: s.name, code: function(strings.ReplaceAll(fill(s.decl, one), "; type ", "\ntype "), code)})
			excl := "id := e.ID; _ = id\nif e.Amount > 0 {\n" + fill(s.send, one) + "\n} else {\n" + fill(s.send, two) + "\n}"
			if f.wrong {
				all = append(all, shape{rule: "SF016", source: "two bodies", carrier: "either " + f.name, sender: s.name, code: function(strings.ReplaceAll(fill(s.decl, one), "; type ", "\ntype "), excl)})
			}
		}
	}
	return all
}

// delayShapes returns call sites that send a message with a delay, to FIFO queues and to
// other queues.
func delayShapes() []shape {
	const (
		fifo     = `ordersURL`
		unknown  = `os.Getenv("QUEUE_URL")`
		standard = `"https://sqs.eu-west-1.amazonaws.com/42/orders"`
	)
	var all []shape
	forms := []struct {
		name, pre, delay string // delay is an expression of type int
		url              string
		dedup, wrong     bool
	}{
		{"constant", "", `5`, fifo, false, true},
		{"constant and an ID", "", `5`, unknown, true, true},
		{"named constant", "const wait = 5", `wait`, fifo, true, true},
		{"of the event", "", `e.Amount`, fifo, false, true},
		{"constant in a branch", "wait := 0; if e.Amount > 9 { wait = 5 }", `wait`, unknown, true, true},
		{"at most a constant", "wait := e.Amount / 1000; if wait > 15 { wait = 15 }", `wait`, unknown, true, true},
		{"zero", "", `0`, fifo, true, false},
		{"of the event, without proof", "", `e.Amount`, unknown, true, false},
		{"unknown queue", "", `5`, unknown, false, false},
		{"standard queue", "", `5`, standard, false, false},
		{"seconds of the event", "", `e.Amount / 1000`, unknown, true, false},
	}
	carriers := []struct{ name, decl, send string }{
		{"v2", "", `_, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(%url), MessageBody: aws.String(encode(e)), MessageGroupId: &e.Account, %id DelaySeconds: int32(%delay)}); return err`},
		{"v2 fields one by one", "", `in := &sqs.SendMessageInput{QueueUrl: aws.String(%url), MessageBody: aws.String(encode(e)), MessageGroupId: &e.Account, %id}; in.DelaySeconds = int32(%delay); _, err := client.SendMessage(ctx, in); return err`},
		{"v1", "", `_, err := older.SendMessage(&sqs1.SendMessageInput{QueueUrl: aws.String(%url), MessageBody: aws.String(encode(e)), MessageGroupId: &e.Account, %id DelaySeconds: aws.Int64(int64(%delay))}); return err`},
		{"v1, nil or a pointer", "", `var delay *int64; if e.Amount >= 0 { delay = aws.Int64(int64(%delay)) }; _, err := older.SendMessage(&sqs1.SendMessageInput{QueueUrl: aws.String(%url), MessageBody: aws.String(encode(e)), MessageGroupId: &e.Account, %id DelaySeconds: delay}); return err`},
		{"helper", "func input$(e *order, url string, delay int32) *sqs.SendMessageInput { return &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String(encode(e)), MessageGroupId: &e.Account, %id DelaySeconds: delay} }", `_, err := client.SendMessage(ctx, input$(e, %url, int32(%delay))); return err`},
	}
	for _, c := range carriers {
		for _, f := range forms {
			id := ""
			if f.dedup {
				id = "MessageDeduplicationId: &e.ID,"
			}
			put := strings.NewReplacer("%url", f.url, "%id", id, "%delay", f.delay).Replace
			all = append(all, shape{rule: "SF011", wrong: f.wrong, source: "delay", carrier: f.name, sender: c.name, code: function(put(c.decl), f.pre+"\n"+put(c.send))})
		}
	}
	return all
}
