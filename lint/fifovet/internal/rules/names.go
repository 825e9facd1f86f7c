package rules

import "regexp"

var (
	// placeName matches names of attributes for a place: the place of a process, such
	// as a region or a host, or the address for a reply, such as reply_to. The names
	// for events and attempts are in package attrname.
	placeName = regexp.MustCompile(`(?i)(^|[_.-])(region|host|hostname|node|zone|env|environment|stage|pod|cluster|instance|datacenter|user[_.-]?agent)$` +
		`|^(reply|respond|answer)[_.-]?(to|queue|url|topic)$|^callback([_.-]?url)?$`)

	// bodyName matches parameters and fields with a whole body.
	bodyName = regexp.MustCompile(`(?i)^(msg|message)?_?(body|payload|content|contents|json|raw|data)$|(body|payload|JSON)$|^(msg|message)$`)
)
