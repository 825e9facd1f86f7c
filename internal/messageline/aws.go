package messageline

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// awsNames are the members of SendMessage, of an entry of SendMessageBatch, and of a message
// of ReceiveMessage, by their names in this package. Empty names are members that say
// nothing about the message's identity.
var awsNames = map[string]string{
	"MessageBody": "body", "Body": "body", "MessageGroupId": "group", "MessageDeduplicationId": "deduplication_id", "MessageId": "message_id",
	"MessageAttributes": "attributes", "Attributes": "",
	"QueueUrl": "", "Id": "", "DelaySeconds": "", "MessageSystemAttributes": "", "ReceiptHandle": "", "MD5OfBody": "", "MD5OfMessageAttributes": "",
}

// fromAWS replaces the members with names of the SQS API by the members of this package. The
// time of a received message is its SentTimestamp.
func fromAWS(members map[string]json.RawMessage) error {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		ours, known := awsNames[name]
		if !known {
			continue
		}
		raw := members[name]
		delete(members, name)
		var err error
		switch name {
		case "Attributes":
			err = systemAttributes(members, raw)
		case "MessageAttributes":
			raw, err = attributeValues(raw)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, twice := members[ours]; twice {
			return fmt.Errorf("%s: the line has %s, too; remove one of them", name, ours)
		}
		if ours != "" {
			members[ours] = raw
		}
	}
	return nil
}

// systemAttributes takes the group, the deduplication ID and the time of the send from the
// Attributes of a received message.
func systemAttributes(members map[string]json.RawMessage, raw json.RawMessage) error {
	system, err := texts(raw)
	if err != nil {
		return err
	}
	for name, ours := range map[string]string{"MessageGroupId": "group", "MessageDeduplicationId": "deduplication_id", "SentTimestamp": "at"} {
		text, ok := system[name]
		if _, twice := members[ours]; !ok || twice {
			continue
		}
		if ours == "at" {
			ms, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return errors.New("SentTimestamp is not a number of milliseconds")
			}
			text = time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
		}
		if members[ours], err = json.Marshal(text); err != nil {
			return err
		}
	}
	return nil
}

// attributeValues returns message attributes of the SQS API as an object of strings. A
// binary value stays in base64.
func attributeValues(raw json.RawMessage) (json.RawMessage, error) {
	var values map[string]struct{ StringValue, BinaryValue *string }
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, errors.New("not an object of attribute values such as {\"k\":{\"DataType\":\"String\",\"StringValue\":\"v\"}}")
	}
	texts := make(map[string]string, len(values))
	for name, v := range values {
		switch {
		case v.StringValue != nil:
			texts[name] = *v.StringValue
		case v.BinaryValue != nil:
			texts[name] = *v.BinaryValue
		default:
			return nil, fmt.Errorf("%s has neither StringValue nor BinaryValue", name)
		}
	}
	return json.Marshal(texts)
}
