package sqstest

// Deviations from AWS in this file: AWS has none of these paths. LocalStack has them, and
// test suites that were written for it use them.

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
)

const (
	localStackHealth   = "/_localstack/health"
	localStackMessages = "/_aws/sqs/messages"
)

// serveLocalStack answers the requests of suites written for LocalStack. It reports whether
// the request is one of:
//
//	GET /_localstack/health                            {"services": {"sqs": "running"}, ...}
//	GET /_aws/sqs/messages?QueueUrl=URL                the messages, without receiving them
//	GET /_aws/sqs/messages/REGION/ACCOUNT/NAME         the same
//
// The messages are XML, or JSON if the header Accept asks for it.
func (s *Server) serveLocalStack(w http.ResponseWriter, r *http.Request) bool {
	path, isMessages := strings.CutPrefix(r.URL.Path, localStackMessages)
	switch {
	case r.URL.Path == localStackHealth:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"edition":"sqsfifo","services":{"sqs":"running"}}` + "\n"))
	case isMessages:
		queueURL := r.URL.Query().Get("QueueUrl")
		if queueURL == "" {
			queueURL = "/queue" + path
		}
		q := s.queueAt(&queueURL)
		if q == missingQueue {
			refuseXML(w, queueDoesNotExist, noSuchQueue().Error())
			return true
		}
		answer := newMessagesAnswer(q.Messages())
		if strings.Contains(r.Header.Get("Accept"), "json") {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"ReceiveMessageResponse": answer}) // on an error, the client has closed the connection
			return true
		}
		w.Header().Set("Content-Type", "text/xml")
		_ = xml.NewEncoder(w).Encode(answer)
	default:
		return false
	}
	return true
}

// messagesAnswer has the form of an answer to ReceiveMessage in the query protocol.
type messagesAnswer struct {
	XMLName xml.Name `xml:"ReceiveMessageResponse" json:"-"`
	Result  struct {
		Message []shownMessage
	} `xml:"ReceiveMessageResult" json:"ReceiveMessageResult"`
	ResponseMetadata struct{ RequestId string }
}

type shownMessage struct {
	MessageId, ReceiptHandle, MD5OfBody, Body string
	Attribute                                 []struct{ Name, Value string }
}

// newMessagesAnswer lists the undeleted messages. A message that is in flight or delayed is
// listed, too. The receipt handles are not valid.
func newMessagesAnswer(messages []Message) *messagesAnswer {
	a := new(messagesAnswer)
	a.ResponseMetadata.RequestId = uuid.NewString()
	a.Result.Message = []shownMessage{}
	for _, m := range messages {
		if m.Deleted {
			continue
		}
		shown := shownMessage{MessageId: m.MessageID, ReceiptHandle: "not-received", MD5OfBody: digest.Body(m.Body), Body: m.Body}
		for _, a := range []struct {
			name  types.MessageSystemAttributeName
			value string
		}{
			{types.MessageSystemAttributeNameSenderId, senderID},
			{types.MessageSystemAttributeNameSentTimestamp, millis(m.AcceptedAt)},
			{types.MessageSystemAttributeNameMessageGroupId, m.GroupID},
			{types.MessageSystemAttributeNameMessageDeduplicationId, m.DeduplicationID},
			{types.MessageSystemAttributeNameSequenceNumber, m.SequenceNumber},
		} {
			if a.value != "" {
				shown.Attribute = append(shown.Attribute, struct{ Name, Value string }{string(a.name), a.value})
			}
		}
		a.Result.Message = append(a.Result.Message, shown)
	}
	return a
}
