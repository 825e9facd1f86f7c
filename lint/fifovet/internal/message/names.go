package message

import "regexp"

var (
	// memberName matches names of members with a different value in each body, such as an
	// ID or a key.
	memberName = regexp.MustCompile(`^(id|ID|Id|uid|key|Key)$|(?i:^(u|g|ul)uid$|ulid$|[_.-](id|key|uuid|guid)$)|[a-z](ID|Id|UUID|Uuid|Key)$`)

	// eventType matches types whose own ID is the ID of the event.
	eventType = regexp.MustCompile(`(?i)(event|message|msg|envelope|job|command|notification|record)$`)
)
