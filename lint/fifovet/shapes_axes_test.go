package fifovet

import (
	"fmt"
	"strings"
)

// source is a Go expression for a field of a message, such as e.ID. In a name such as
// count$, the "$" stands for the number of the generated function.
type source struct {
	name, expr string
	decl       string // declarations for expr, or ""
	wrong      bool   // expr does not identify an event
}

var mintedSources = []source{
	{name: "uuid", expr: `uuid.NewString()`, wrong: true},
	{name: "clock", expr: `strconv.FormatInt(time.Now().UnixNano(), 10)`, wrong: true},
	{name: "random text", expr: `rand.Text()`, wrong: true},
	{name: "atomic counter", expr: `strconv.FormatInt(sequence$.Add(1), 10)`, decl: `var sequence$ atomic.Int64`, wrong: true},
	{name: "package counter", expr: `strconv.Itoa(next$())`, decl: `var count$ int; func next$() int { mutex.Lock(); defer mutex.Unlock(); count$++; return count$ }`, wrong: true},
	{name: "value of the process", expr: `process$`, decl: `var process$ = uuid.NewString()`, wrong: true},
	{name: "once value", expr: `once$()`, decl: `var once$ = sync.OnceValue(func() string { return uuid.NewString() })`, wrong: true},
	{name: "process ID", expr: `strconv.Itoa(os.Getpid())`, wrong: true},
	{name: "deadline", expr: `deadline$(ctx)`, decl: `func deadline$(ctx context.Context) string { at, _ := ctx.Deadline(); return at.String() }`, wrong: true},
	{name: "pointer", expr: `fmt.Sprintf("%p", e)`, wrong: true},
	{name: "receipt handle", expr: `*m.ReceiptHandle`, wrong: true},
	{name: "generator interface", expr: `tokens.Issue()`, wrong: true},
}

var eventSources = []source{
	{name: "field", expr: `e.ID`},
	{name: "joined fields", expr: `e.Account + "/" + e.ID`},
	{name: "hash", expr: `hash$(e.ID)`, decl: `func hash$(s string) string { sum := sha256.Sum256([]byte(s)); return hex.EncodeToString(sum[:]) }`},
	{name: "derived UUID", expr: `uuid.NewSHA1(uuid.NameSpaceURL, []byte(e.ID)).String()`},
	{name: "time of the event", expr: `e.At.UTC().Format(time.RFC3339Nano)`},
	{name: "message ID", expr: `*m.MessageId`},
	{name: "derived by an interface", expr: `keys.Of(e)`},
}

// carrier is Go code that passes a value to a message, for example through a variable or a
// struct field. The function `carry` replaces each "@" by the expression of a source.
type carrier struct {
	name            string
	decl, pre, expr string // declarations, statements before the send, expression in the send
	limit           string // documented reason why the analyzer does not follow the value
	picked          bool   // the value is an element, which may be another one each time (see SF003)
}

const args, params = `ctx, e, m, tokens, keys`, `ctx context.Context, e *order, m types.Message, tokens tokenSource, keys keyOf`

var carriers = []carrier{
	{name: "direct", expr: `@`},
	{name: "variable", pre: `id := @`, expr: `id`},
	{name: "pointer", pre: `id := @; to := &id`, expr: `*to`},
	{name: "helper", decl: `func make$(` + params + `) string { return @ }`, expr: `make$(` + args + `)`},
	{name: "two helpers", decl: `func make$(` + params + `) string { return inner$(` + args + `) }; func inner$(` + params + `) string { return @ }`, expr: `make$(` + args + `)`},
	{name: "helper with an error", decl: `func make$(` + params + `) (string, error) { if e == nil { return "", errors.New("no order") }; return @, nil }`, pre: `id, err := make$(` + args + `); if err != nil { return err }`, expr: `id`},
	{name: "struct field", decl: `type ticket$ struct{ id, note string }`, pre: `t := ticket${id: @}`, expr: `t.id`},
	{name: "constructor", decl: `type ticket$ struct{ id, note string }; func new$(` + params + `) *ticket$ { return &ticket${id: @, note: "n"} }`, pre: `t := new$(` + args + `)`, expr: `t.id`},
	{name: "method", decl: `type ticket$ struct{ id, note string }; func (t ticket$) Key() string { return t.id }`, pre: `t := ticket${id: @}`, expr: `t.Key()`},
	{name: "method of an interface", decl: `type keyed$ interface{ Key$() string }; type ticket$ struct{ id string }; func (t *ticket$) Key$() string { return t.id }; func key$(k keyed$) string { return k.Key$() }`, pre: `t := &ticket${id: @}`, expr: `key$(t)`},
	{name: "interface that makes it", decl: `type maker$ interface{ Ticket$(` + params + `) string }; type only$ struct{}; func (*only$) Ticket$(` + params + `) string { return @ }; var _ maker$ = (*only$)(nil); type office$ struct{ maker maker$ }; func use$(o office$, ` + params + `) string { return o.maker.Ticket$(` + args + `) }`, expr: `use$(office${&only${}}, ` + args + `)`},
	{name: "setter", decl: `type ticket$ struct{ id string }; func (t *ticket$) set(id string) { t.id = id }`, pre: `t := &ticket${}; t.set(@)`, expr: `t.id`},
	{name: "out parameter", decl: `func fill$(to *string, ` + params + `) { *to = @ }`, pre: `var id string; fill$(&id, ` + args + `)`, expr: `id`},
	{name: "nested struct", decl: `type head$ struct{ id string }; type ticket$ struct{ head head$ }`, pre: `t := ticket${head$ {@}}`, expr: `t.head.id`},
	{name: "embedded struct", decl: `type head$ struct{ id string }; type ticket$ struct{ head$; note string }`, pre: `var t ticket$; t.id = @`, expr: `t.id`},
	{name: "closure", pre: `id := func() string { return @ }`, expr: `id()`},
	{name: "function variable", decl: `var make$ = func(` + params + `) string { return @ }`, expr: `make$(` + args + `)`},
	{name: "map", pre: `values := map[string]string{"id": @, "kind": "order"}`, expr: `values["id"]`},
	{name: "joined slice", pre: `parts := []string{"order", @}`, expr: `strings.Join(parts, "-")`},
	{name: "format", expr: `fmt.Sprintf("order-%s", @)`},
	{name: "builder", pre: `var b strings.Builder; b.WriteString("order-"); b.WriteString(@)`, expr: `b.String()`},
	{name: "generic function", decl: `func same$[T any](v T) T { return v }`, expr: `same$(@)`},
	{name: "empty interface", pre: `var v any = @`, expr: `v.(string)`},
	{name: "branch", pre: `id := @; if e.Amount > 10 { id = "large-" + id }`, expr: `id`},
	{name: "deferred result", decl: `func make$(` + params + `) (id string) { defer func() { id = @ }(); return "" }`, expr: `make$(` + args + `)`},
	{name: "channel", pre: `c1 := make(chan string, 1); c1 <- @`, expr: `<-c1`},
	{name: "context", pre: `ctx = context.WithValue(ctx, key{}, @)`, expr: `ctx.Value(key{}).(string)`, limit: "context"},
	{name: "sync.Map", pre: `var box sync.Map; box.Store("id", @); held, _ := box.Load("id")`, expr: `held.(string)`, limit: "sync.Map"},
	{name: "reflection", pre: `held := reflect.ValueOf(@)`, expr: `held.String()`, limit: "reflect"},
}

// sender is Go code that sends a message. %body, %group, %dedup, %url and %attributes stand
// for the expressions of the message's fields. Code for an optional field is in angle
// brackets, after the field's name: <group MessageGroupId: aws.String(%group),>.
type sender struct {
	name       string
	decl, send string
	attributes string // Go type of the map of attributes
	value      string // Go text of one value in this map
	limit      string
}

const (
	v2Input = `&sqs.SendMessageInput{QueueUrl: aws.String(%url), MessageBody: aws.String(%body), <group MessageGroupId: aws.String(%group),> <dedup MessageDeduplicationId: aws.String(%dedup),> <attributes MessageAttributes: %attributes,>}`
	v2Entry = `types.SendMessageBatchRequestEntry{Id: aws.String("1"), MessageBody: aws.String(%body), <group MessageGroupId: aws.String(%group),> <dedup MessageDeduplicationId: aws.String(%dedup),> <attributes MessageAttributes: %attributes,>}`
	v2Map   = `map[string]types.MessageAttributeValue`
	v2Value = `types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(%s)}`
	far     = `"QueueUrl"`

	// A sender may use a helper function. fieldParams has the helper's parameters for the
	// fields of the message, fieldArgs has their arguments, and ownInput is the message
	// inside the helper. For the placeholders, see type sender.
	fieldParams = `body string, url string, <group group string,> <dedup dedup string,> <attributes attributes ` + v2Map + `,>`
	fieldArgs   = `%body, %url, <group %group,> <dedup %dedup,> <attributes %attributes,>`
	ownInput    = `&sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, <group MessageGroupId: &group,> <dedup MessageDeduplicationId: &dedup,> <attributes MessageAttributes: attributes,>}`
)

var senders = []sender{
	{name: "v2", send: `_, err := client.SendMessage(ctx, ` + v2Input + `); return err`},
	{name: "v2 by an interface", decl: `type api$ interface{ SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) }`, send: `var api api$ = client; _, err := api.SendMessage(ctx, ` + v2Input + `); return err`},
	{name: "v2 fields one by one", send: `in := &sqs.SendMessageInput{}; in.QueueUrl = aws.String(%url); in.MessageBody = aws.String(%body); <group in.MessageGroupId = aws.String(%group);> <dedup in.MessageDeduplicationId = aws.String(%dedup);> <attributes in.MessageAttributes = %attributes;> _, err := client.SendMessage(ctx, in); return err`},
	{name: "v2 batch", send: `out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(%url), Entries: []types.SendMessageBatchRequestEntry{` + strings.TrimPrefix(v2Entry, "types.SendMessageBatchRequestEntry") + `}}); if err == nil && len(out.Failed) > 0 { return errors.New("failed") }; return err`},
	{name: "v2 batch by append", send: `var entries []types.SendMessageBatchRequestEntry; for range 3 { entries = append(entries, ` + v2Entry + `) }; out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(%url), Entries: entries}); if err == nil && len(out.Failed) > 0 { return errors.New("failed") }; return err`},
	{name: "v1", send: `_, err := older.SendMessage(&sqs1.SendMessageInput{QueueUrl: aws.String(%url), MessageBody: aws.String(%body), <group MessageGroupId: aws.String(%group),> <dedup MessageDeduplicationId: aws.String(%dedup),> <attributes MessageAttributes: %attributes,>}); return err`, attributes: `map[string]*sqs1.MessageAttributeValue`, value: `{DataType: aws.String("String"), StringValue: aws.String(%s)}`},
	{name: "v1 setters", send: `in := (&sqs1.SendMessageInput{}).SetQueueUrl(%url).SetMessageBody(%body); <group in.SetMessageGroupId(%group);> <dedup in.SetMessageDeduplicationId(%dedup);> <attributes in.MessageAttributes = %attributes;> _, err := older.SendMessage(in); return err`, attributes: `map[string]*sqs1.MessageAttributeValue`, value: `{DataType: aws.String("String"), StringValue: aws.String(%s)}`},
	{name: "SNS", send: `_, err := topic.Publish(ctx, &sns.PublishInput{TopicArn: aws.String(%url), Message: aws.String(%body), <group MessageGroupId: aws.String(%group),> <dedup MessageDeduplicationId: aws.String(%dedup),> <attributes MessageAttributes: %attributes,>}); return err`, attributes: `map[string]snstypes.MessageAttributeValue`, value: `{DataType: aws.String("String"), StringValue: aws.String(%s)}`},
	{name: "helper", decl: `func post$(ctx context.Context, client *sqs.Client, ` + fieldParams + `) error { _, err := client.SendMessage(ctx, ` + ownInput + `); return err }`, send: `return post$(ctx, client, ` + fieldArgs + `)`},
	{name: "helper that makes the input", decl: `func input$(` + fieldParams + `) *sqs.SendMessageInput { return ` + ownInput + ` }`, send: `in := input$(` + fieldArgs + `); _, err := client.SendMessage(ctx, in); return err`},
	{name: "interface of the program", decl: `type mail$ interface{ Mail$(ctx context.Context, ` + fieldParams + `) error }; type box$ struct{ client *sqs.Client }; func (b *box$) Mail$(ctx context.Context, ` + fieldParams + `) error { _, err := b.client.SendMessage(ctx, ` + ownInput + `); return err }; func by$(ctx context.Context, to mail$, ` + fieldParams + `) error { return to.Mail$(ctx, body, url, <group group,> <dedup dedup,> <attributes attributes,>) }`, send: `return by$(ctx, &box${client}, ` + fieldArgs + `)`},
	{name: "interface in a field", decl: `type mail$ interface{ Mail$(ctx context.Context, ` + fieldParams + `) error }; type box$ struct{ client *sqs.Client }; func (b *box$) Mail$(ctx context.Context, ` + fieldParams + `) error { _, err := b.client.SendMessage(ctx, ` + ownInput + `); return err }; type desk$ struct{ to mail$ }; func desk$of(client *sqs.Client) *desk$ { return &desk${&box${client}} }`, send: `d := desk$of(client); return d.to.Mail$(ctx, ` + fieldArgs + `)`},
	{name: "options struct", decl: `type options$ struct { body, url, group, dedup string; attributes ` + v2Map + ` }; func post$(ctx context.Context, client *sqs.Client, o options$) error { _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.url, MessageBody: &o.body, <group MessageGroupId: &o.group,> <dedup MessageDeduplicationId: &o.dedup,> <attributes MessageAttributes: o.attributes,>}); return err }`, send: `return post$(ctx, client, options${url: %url, body: %body, <group group: %group,> <dedup dedup: %dedup,> <attributes attributes: %attributes,>})`},
	{name: "pointer to options", decl: `type options$ struct { body, url, group, dedup string; attributes ` + v2Map + ` }; func post$(ctx context.Context, client *sqs.Client, o *options$) error { _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.url, MessageBody: &o.body, <group MessageGroupId: &o.group,> <dedup MessageDeduplicationId: &o.dedup,> <attributes MessageAttributes: o.attributes,>}); return err }`, send: `o := &options${url: %url, body: %body}; <group o.group = %group;> <dedup o.dedup = %dedup;> <attributes o.attributes = %attributes;> return post$(ctx, client, o)`},
	{name: "decorator", decl: `type counted$ struct{ *sqs.Client; n int }; func (c *counted$) SendMessage(ctx context.Context, in *sqs.SendMessageInput, opts ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) { c.n++; return c.Client.SendMessage(ctx, in, opts...) }`, send: `c := &counted${Client: client}; _, err := c.SendMessage(ctx, ` + v2Input + `); return err`},
	{name: "entry closure", send: `entry := func(body string) types.SendMessageBatchRequestEntry { return ` + strings.ReplaceAll(v2Entry, "aws.String(%body)", "&body") + ` }; out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(%url), Entries: []types.SendMessageBatchRequestEntry{entry(%body)}}); if err == nil && len(out.Failed) > 0 { return errors.New("failed") }; return err`},
	{name: "send closure", send: `post := func(in *sqs.SendMessageInput) error { _, err := client.SendMessage(ctx, in); return err }; return post(` + v2Input + `)`},
	{name: "another package", send: `return post.Send<dedup ID>(ctx, client, %url, %body, %group<dedup , %dedup>)`},
	{name: "functional option", decl: `type option$ func(*sqs.SendMessageInput); func with$(<group group string,> <dedup dedup string,> <attributes attributes ` + v2Map + `,>) option$ { return func(in *sqs.SendMessageInput) { <group in.MessageGroupId = &group;> <dedup in.MessageDeduplicationId = &dedup;> <attributes in.MessageAttributes = attributes;> } }; func post$(ctx context.Context, client *sqs.Client, url, body string, opts ...option$) error { in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}; for _, o := range opts { o(in) }; _, err := client.SendMessage(ctx, in); return err }`, send: `return post$(ctx, client, %url, %body, with$(<group %group,> <dedup %dedup,> <attributes %attributes,>))`, limit: "functional option"},
}

// surrounding is the code around a send, for example a loop.
type surrounding struct{ name, before, after string }

var surroundings = []surrounding{
	{"straight", "{", "}"},
	{"in a branch", "if e.Amount > 0 {", "}; return nil"},
	{"in a loop", "for range e.Lines {", "}; return nil"},
	{"in a switch", "switch e.Account { case \"\": return nil; default:", "}"},
	{"in a literal", "run := func() error {", "}; return run()"},
	{"after an early return", "if e == nil { return nil }; {", "}"},
	{"under a lock", "mutex.Lock(); defer mutex.Unlock(); {", "}"},
}

// queue describes Go code that computes the URL of a queue or the ARN of a topic.
type queue struct {
	name, pre, expr string
	certain         bool // the source shows that the queue is FIFO
}

var queues = []queue{
	{"constant", "", `ordersURL`, true},
	{"suffix", "", `os.Getenv("QUEUE") + ".fifo"`, true},
	{"format", "", `fmt.Sprintf("https://sqs.%s.amazonaws.com/42/orders.fifo", os.Getenv("REGION"))`, true},
	{"path.Join", "", `path.Join(os.Getenv("BASE"), "orders.fifo")`, true},
	{"looked up", `found, lookErr := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("orders.fifo")}); if lookErr != nil { return lookErr };`, `*found.QueueUrl`, true},
	{"unknown", "", `os.Getenv("QUEUE_URL")`, false},
}

// fill replaces the placeholders in a sender's code. For example, "<group f(%group)>"
// becomes "f(e.Account)" if fields["group"] is "e.Account", and "" if the map `fields` has
// no group.
func fill(text string, fields map[string]string) string {
	for {
		open := strings.Index(text, "<")
		for open >= 0 && !fieldMark(text[open:]) {
			next := strings.Index(text[open+1:], "<")
			if next < 0 {
				open = -1
				break
			}
			open += 1 + next
		}
		if open < 0 {
			break
		}
		end := open + strings.Index(text[open:], ">")
		inner := text[open+1 : end]
		name, rest, _ := strings.Cut(inner, " ")
		if _, ok := fields[name]; !ok {
			rest = ""
		}
		text = text[:open] + rest + text[end+1:]
	}
	for name, expr := range fields {
		text = strings.ReplaceAll(text, "%"+name, expr)
	}
	return text
}

func fieldMark(text string) bool {
	for _, name := range []string{"group ", "dedup ", "attributes "} {
		if strings.HasPrefix(text, "<"+name) {
			return true
		}
	}
	return false
}

// numbered replaces each "$" in a text by the number of the call site.
func numbered(text string, n int) string { return strings.ReplaceAll(text, "$", fmt.Sprint(n)) }
