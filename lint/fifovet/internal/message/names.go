package message

import "regexp"

var (
	// memberName matches names of struct fields and JSON members such as orderID and
	// event-key.
	memberName = regexp.MustCompile(`^(id|ID|Id|uid|key|Key)$|(?i:^(u|g|ul)uid$|ulid$|[_.-](id|key|uuid|guid)$)|[a-z](ID|Id|UUID|Uuid|Key)$`)

	// eventType matches names of types such as OrderEvent. A member of such a type is the
	// event's ID if its name matches memberName.
	eventType = regexp.MustCompile(`(?i)(event|message|msg|envelope|job|command|notification|record)$`)
)
