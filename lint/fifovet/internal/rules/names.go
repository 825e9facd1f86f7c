package rules

import "regexp"

var (
	// placeName matches attributes that name the place of a process or of an answer.
	// Package attrname knows the names of events and attempts.
	placeName = regexp.MustCompile(`(?i)(^|[_.-])(region|host|hostname|node|zone|env|environment|stage|pod|cluster|instance|datacenter|user[_.-]?agent)$` +
		`|^(reply|respond|answer)[_.-]?(to|queue|url|topic)$|^callback([_.-]?url)?$`)

	// bodyName matches parameters and fields with a whole body.
	bodyName = regexp.MustCompile(`(?i)^(msg|message)?_?(body|payload|content|contents|json|raw|data)$|(body|payload|JSON)$|^(msg|message)$`)
)
