package lint

import "slices"

// Limit is a violation in Go source that the analyzer does not find.
type Limit struct {
	// Text is one or two sentences.
	Text string

	// Example is Go code that breaks the rules without a finding: statements of a
	// function, and declarations that begin at the left margin with func, type or var. The
	// statements may use ctx, client, order, and input, the message that is sent after them.
	Example string

	rules []string
}

// Limits returns the violations of the rule that the analysis of Go source does not find.
// The caller owns the slice.
func (r Rule) Limits() []Limit {
	var found []Limit
	for _, l := range limits {
		if slices.Contains(l.rules, r.ID) {
			found = append(found, l)
		}
	}
	return found
}

// aboutOrigins are the rules that depend on the origin of a value.
var aboutOrigins = []string{nondeterministicID, attrOnlyIdentity, constantID, constantBody, remintedOnRetry, randomGroupID, volatileBody}

// limits has one entry for each limit. TestLimits of package fifovet analyzes the examples
// and fails if a limit no longer holds.
var limits = []Limit{
	{
		rules: aboutOrigins,
		Text:  "A value is not followed through a context, a sync.Map, reflection, a file or a database.",
		Example: `ctx = context.WithValue(ctx, key{}, uuid.NewString())
input.MessageDeduplicationId = aws.String(ctx.Value(key{}).(string))

type key struct{}`,
	},
	{
		rules: []string{attrOnlyIdentity, constantBody, missingGroupID},
		Text:  "A message that a functional option completes is unknown: nothing is known to be missing in it, and its attributes are not seen.",
		Example: `input.MessageBody = &order.Account
complete(input, withLabel("event_id", order.ID))

type option func(*sqs.SendMessageInput)

func withLabel(name, value string) option {
	return func(input *sqs.SendMessageInput) {
		input.MessageAttributes = map[string]types.MessageAttributeValue{name: {StringValue: &value}}
	}
}

func complete(input *sqs.SendMessageInput, options ...option) {
	for _, o := range options {
		o(input)
	}
}`,
	},
	{
		rules: []string{attrOnlyIdentity, constantBody, missingGroupID},
		Text:  "A message that a function gets by value and returns is unknown in the same way.",
		Example: `input.MessageBody = &order.Account
completed := labelled(*input, order.ID)
input = &completed

func labelled(input sqs.SendMessageInput, id string) sqs.SendMessageInput {
	input.MessageAttributes = map[string]types.MessageAttributeValue{"event_id": {StringValue: &id}}
	return input
}`,
	},
	{
		rules: aboutOrigins,
		Text: "A call through an interface is followed if the code shows the value in the interface, or if the interface has one implementation in its package, " +
			"in the caller's package or in its imports; decorators and test doubles do not count as implementations. Otherwise only a name such as NewID tells that the result is fresh.",
		Example: `input.MessageDeduplicationId = aws.String(Tickets[order.Account].Ticket())

type counter interface{ Ticket() string }

type fresh struct{}

func (fresh) Ticket() string { return uuid.NewString() }

type stored struct{ ticket string }

func (s stored) Ticket() string { return s.ticket }

var Tickets = map[string]counter{"north": fresh{}, "south": stored{"17"}}`,
	},
	{
		rules: aboutOrigins,
		Text:  "A function in an exported variable or field is unknown, and so is one of several functions in a variable. Only a name such as newID or now tells what it returns.",
		Example: `input.MessageDeduplicationId = aws.String(Ticket())

var Ticket = func() string { return uuid.NewString() }`,
	},
	{
		rules: aboutOrigins,
		Text:  "The functions of the standard library are known by name. Others, such as os.CreateTemp, are unknown.",
		Example: `file, err := os.CreateTemp("", "order")
if err != nil {
	return err
}
input.MessageDeduplicationId = aws.String(filepath.Base(file.Name()))`,
	},
	{
		rules: []string{attrOnlyIdentity},
		Text:  "Attributes with names from a slice, from another table or from arguments in pairs are not seen.",
		Example: `input.MessageBody = aws.String(order.Account)
input.MessageAttributes = map[string]types.MessageAttributeValue{}
for _, name := range []string{"event_id"} {
	input.MessageAttributes[name] = types.MessageAttributeValue{StringValue: &order.ID}
}`,
	},
	{
		rules: []string{constantID},
		Text:  "One of several constants, such as an element of a table, is not reported.",
		Example: `kinds := []string{"refresh", "rebuild"}
input.MessageDeduplicationId = &kinds[order.Amount%2]`,
	},
	{
		rules: []string{remintedOnRetry},
		Text:  "A retry in another package than the source of the ID is not seen.",
		Example: `for range 3 { // post.Fresh sends the order with a new ID
	if err := post.Fresh(ctx, client, order.ID); err == nil {
		return nil
	}
}`,
	},
	{
		rules: []string{remintedOnRetry},
		Text:  "An error that is compared in another function than the send is not seen.",
		Example: `for range 3 {
	input.MessageDeduplicationId = aws.String(uuid.NewString())
	if sent(ctx, client, input) {
		return nil
	}
}

func sent(ctx context.Context, client *sqs.Client, input *sqs.SendMessageInput) bool {
	_, err := client.SendMessage(ctx, input)
	return err == nil
}`,
	},
	{
		rules:   []string{rawSendBypass},
		Text:    "A module counts as a module with a producer if the package imports sqsfifo, directly or not.",
		Example: `input.MessageDeduplicationId = &order.ID // and only another package of the module makes a producer`,
	},
	{
		rules: []string{missingGroupID, fifoDelay},
		Text: "A queue is FIFO by a constant name, a constant suffix in a concatenation, Sprintf or path.Join, the name in a call of GetQueueUrl, or a deduplication ID. " +
			"A URL in a field or an environment variable is unknown.",
		Example: `_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
	QueueUrl: aws.String(os.Getenv("ORDERS_URL")), MessageBody: &order.ID, DelaySeconds: 30,
})
return err`,
	},
	{
		rules: []string{invalidID},
		Text:  "The length of a joined text is unknown.",
		Example: `a, b := sha512.Sum512([]byte(order.ID)), sha512.Sum512([]byte(order.Account))
input.MessageDeduplicationId = aws.String(hex.EncodeToString(a[:]) + hex.EncodeToString(b[:]))`,
	},
	{
		rules:   []string{volatileBody},
		Text:    "A body from an encoder outside of the standard library is unknown, unless a fact describes the encoder. The whitespace of protojson, which differs between two builds, is not reported.",
		Example: `input.MessageBody = aws.String(post.Encode(time.Now()))`,
	},
	{
		rules: []string{volatileBody},
		Text:  "The functions of a template's FuncMap, and the String methods of fields, are not followed.",
		Example: `body := &strings.Builder{}
page := template.Must(template.New("").Funcs(template.FuncMap{"now": time.Now}).Parse("{{now}}"))
if err := page.Execute(body, order); err != nil {
	return err
}
input.MessageBody = aws.String(body.String())`,
	},
	{
		rules:   []string{sharedConstantKey},
		Text:    "Keys are compared within one package.",
		Example: `input.MessageDeduplicationId = aws.String("refresh") // and another package sends storms with this ID`,
	},
	{
		rules: []string{unreadFailures},
		Text:  "An output that is returned, stored or given to a function counts as read.",
		Example: `out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{})
log.Println(out)
return err`,
	},
	{
		rules: []string{unreadFailures},
		Text:  "A branch that skips the check is not seen.",
		Example: `out, err := client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{})
if err == nil && order.Amount > 10 {
	log.Println(len(out.Failed))
}
return err`,
	},
	{
		rules: []string{oneIDTwoBodies},
		Text:  "Both sends are in one function, to one queue, and the second one runs after the first one succeeded. Sends in two functions are not compared.",
		Example: `if err := created(ctx, client, order); err != nil {
	return err
}
return paid(ctx, client, order)

func created(ctx context.Context, client *sqs.Client, order Order) error {
	_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(url), MessageGroupId: &order.Account, MessageDeduplicationId: &order.ID, MessageBody: aws.String(order.ID + " created"),
	})
	return err
}

func paid(ctx context.Context, client *sqs.Client, order Order) error {
	_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(url), MessageGroupId: &order.Account, MessageDeduplicationId: &order.ID, MessageBody: aws.String(order.ID + " paid"),
	})
	return err
}`,
	},
	{
		rules: []string{oneIDTwoBodies},
		Text:  "In a loop, the body has to contain an element of the range, or a received value. Bodies from unknown values are not compared.",
		Example: `for i := 0; i < order.Amount; i++ {
	input.MessageDeduplicationId, input.MessageBody = &order.ID, aws.String(post.Line(i))
	if _, err := client.SendMessage(ctx, input); err != nil {
		return err
	}
}`,
	},
	{
		rules: []string{unflushedProducer},
		Text:  "A package that flushes or closes any producer counts as one that closes all. A Close that some path leaves out is not seen.",
		Example: `producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
if err != nil {
	return err
}
producer.SendAsync(ctx, order, nil)
if order.Amount > 10 {
	return producer.Close(ctx)
}`,
	},
	{
		rules: []string{unflushedProducer},
		Text:  "A producer that leaves its package, as an argument, a result or in a field, is not reported: other code may close it.",
		Example: `producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
if err != nil {
	return err
}
office.producer = producer
office.producer.SendAsync(ctx, order, nil)

var office struct{ producer *sqsfifo.Producer[Order] }`,
	},
}
