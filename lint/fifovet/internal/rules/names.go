package rules

import "regexp"

var (
	// placeName matches attributes that name the location of a process or of an answer,
	// such as a region or a host. The names for events and attempts are in package
	// attrname.
	placeName = regexp.MustCompile(`(?i)(^|[_.-])(region|host|hostname|node|zone|env|environment|stage|pod|cluster|instance|datacenter|user[_.-]?agent)$` +
		`|^(reply|respond|answer)[_.-]?(to|queue|url|topic)$|^callback([_.-]?url)?$`)

	// bodyName matches parameters and fields with a whole body.
	bodyName = regexp.MustCompile(`(?i)^(msg|message)?_?(body|payload|content|contents|json|raw|data)$|(body|payload|JSON)$|^(msg|message)$`)
)
