package message

import "regexp"

var (
	// memberName matches names of struct fields and JSON members that contain an ID or a
	// key, such as id, orderID and event-key.
	memberName = regexp.MustCompile(`^(id|ID|Id|uid|key|Key)$|(?i:^(u|g|ul)uid$|ulid$|[_.-](id|key|uuid|guid)$)|[a-z](ID|Id|UUID|Uuid|Key)$`)

	// eventType matches names of types for events and messages, such as OrderEvent. A
	// member of such a type is the ID of the event if its name matches memberName.
	eventType = regexp.MustCompile(`(?i)(event|message|msg|envelope|job|command|notification|record)$`)
)
