package livepage

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/page"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// stateWire is the page's data as JSON. It has no values that change with time alone, so
// equal states give equal JSON.
type stateWire struct {
	Queues      []string          `json:"queues"`
	Queue       string            `json:"queue"` // the shown queue
	Path        string            `json:"path"`  // path of the queue's URL
	IntervalMS  int64             `json:"interval_ms"`
	AheadMS     int64             `json:"ahead_ms"` // how far the queue's clock is ahead of this machine's clock
	Attributes  map[string]string `json:"attributes"`
	Remembered  int               `json:"remembered"` // number of all remembered IDs; Window has the newest of them
	Window      []rememberedWire  `json:"window"`
	Suppressed  int               `json:"suppressed"` // number of all suppressed sends; Suppression has the newest of them
	Suppression []suppressedWire  `json:"suppression"`
	Blocked     int               `json:"blocked"` // number of all blocked groups; Blockage has those blocked for the longest time
	Blockage    []blockedWire     `json:"blockage"`
	Faults      json.RawMessage   `json:"faults"`
	Logging     bool              `json:"logging"`
	Requests    []requestWire     `json:"requests"`
}

type rememberedWire struct {
	ID         string `json:"id"`
	Group      string `json:"group"`
	Message    string `json:"message"`
	AcceptedMS int64  `json:"accepted"`
	UntilMS    int64  `json:"until"`
}

type suppressedWire struct {
	AtMS         int64           `json:"at"`
	UntilMS      int64           `json:"until"`
	Group        string          `json:"group"`
	ID           string          `json:"id"`
	ContentBased bool            `json:"content_based"`
	Lost         []string        `json:"lost,omitempty"`
	Forgotten    bool            `json:"forgotten,omitempty"` // the queue no longer has the text of the original
	Original     rememberedWire  `json:"original"`
	Body         page.Difference `json:"body"`
	Attributes   []string        `json:"attributes,omitempty"`
}

// blockedWire is a group whose first message was received and not deleted.
type blockedWire struct {
	Group    string `json:"group"`
	Message  string `json:"message"` // ID of the group's first message
	Receives int    `json:"receives"`
	Messages int    `json:"messages"`
	SinceMS  int64  `json:"since"` // time of the first receive
	UntilMS  int64  `json:"until"` // end of the message's visibility timeout; 0 if the message is visible
}

// read returns the state as JSON.
func (h *Handler) read(queues []*sqstest.Queue, q *sqstest.Queue) []byte {
	s := stateWire{
		Queues: []string{}, IntervalMS: window.Interval.Milliseconds(), Window: []rememberedWire{}, Suppression: []suppressedWire{}, Blockage: []blockedWire{},
		Faults: json.RawMessage("[]"),
	}
	s.Logging, s.Requests = h.requests.snapshot()
	for _, other := range queues {
		s.Queues = append(s.Queues, other.Name())
	}
	if q != nil {
		s.add(q)
		s.Faults = h.faults(q.Name())
	}
	text, err := json.Marshal(s)
	if err != nil { // cannot fail, because the state has only texts and numbers
		return []byte("null")
	}
	return text
}

func (s *stateWire) add(q *sqstest.Queue) {
	s.Queue = q.Name()
	s.Path = "/" + sqstest.Account + "/" + q.Name()
	s.AheadMS = time.Until(q.Now()).Round(100 * time.Millisecond).Milliseconds()
	out, err := q.GetQueueAttributes(context.Background(), &sqs.GetQueueAttributesInput{
		QueueUrl: aws.String(q.URL()), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	// An error means that the queue was deleted during this call. The page then shows no
	// attributes.
	if err == nil {
		s.Attributes = out.Attributes
	}
	remembered := q.Window()
	s.Remembered = len(remembered)
	for _, e := range remembered[max(0, len(remembered)-MaxRemembered):] {
		s.Window = append(s.Window, rememberedWire{e.DeduplicationID, e.GroupID, e.MessageID, e.AcceptedAt.UnixMilli(), e.Until.UnixMilli()})
	}
	suppressed := q.Suppressed()
	s.Suppressed = len(suppressed)
	for _, one := range suppressed[max(0, len(suppressed)-MaxSuppressed):] {
		s.Suppression = append(s.Suppression, wireOf(one))
	}
	blocked := q.Blocked()
	s.Blocked = len(blocked)
	for _, g := range blocked[:min(len(blocked), MaxBlocked)] {
		w := blockedWire{g.Head.GroupID, g.Head.MessageID, g.Head.Receives, g.Messages, g.FirstReceived.UnixMilli(), 0}
		if !g.Head.HiddenUntil.IsZero() {
			w.UntilMS = g.Head.HiddenUntil.UnixMilli()
		}
		s.Blockage = append(s.Blockage, w)
	}
}

// lostOf returns the parts of a suppressed send that differ from the original (the stored
// message): "attributes", "group" or "body". It returns false if the queue no longer has
// the original's text.
func lostOf(s sqstest.Suppression) (lost []string, known bool) {
	if s.Original.Body == "" {
		return nil, false
	}
	if len(page.Attributes(significant(s.Attributes), significant(s.Original.Attributes))) > 0 {
		lost = append(lost, "attributes")
	}
	if s.GroupID != s.Original.GroupID {
		lost = append(lost, "group")
	}
	if s.Body != s.Original.Body {
		lost = append(lost, "body")
	}
	return lost, true
}

func wireOf(s sqstest.Suppression) suppressedWire {
	w := suppressedWire{
		AtMS: s.At.UnixMilli(), UntilMS: s.Until.UnixMilli(), Group: s.GroupID, ID: s.DeduplicationID, ContentBased: s.ContentBased,
		Original: rememberedWire{
			ID: s.DeduplicationID, Group: s.Original.GroupID, Message: s.Original.MessageID,
			AcceptedMS: s.Original.AcceptedAt.UnixMilli(), UntilMS: s.Until.UnixMilli(),
		},
	}
	lost, known := lostOf(s)
	w.Lost, w.Forgotten = lost, !known
	if !known {
		w.Body = page.Differ(s.Body, s.Body)
		return w
	}
	w.Body = page.Differ(s.Body, s.Original.Body)
	w.Attributes = page.Attributes(texts(s.Attributes), texts(s.Original.Attributes))
	return w
}

func texts(attributes map[string]types.MessageAttributeValue) map[string]string {
	out := make(map[string]string, len(attributes))
	for name, v := range attributes {
		out[name] = strings.ToValidUTF8(aws.ToString(v.StringValue)+string(v.BinaryValue), "\ufffd")
	}
	return out
}

// significant returns the attributes that may distinguish two events. It leaves out
// attributes such as trace IDs (see attrname.NeverIdentifies).
func significant(attributes map[string]types.MessageAttributeValue) map[string]string {
	out := texts(attributes)
	for name := range out {
		if attrname.NeverIdentifies(name) {
			delete(out, name)
		}
	}
	return out
}

// faults returns the injected faults of a queue as JSON. It asks the server by an HTTP
// request in this process.
func (h *Handler) faults(queue string) json.RawMessage {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, prefix+"faults?queue="+url.QueryEscape(queue), nil)
	if err != nil {
		return json.RawMessage("[]")
	}
	answer, err := h.client.Do(r)
	if err != nil {
		return json.RawMessage("[]")
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	// An error means that the queue was deleted during this call.
	if err != nil || answer.StatusCode != http.StatusOK || !json.Valid(text) {
		return json.RawMessage("[]")
	}
	return text
}
