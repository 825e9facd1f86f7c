package rules

import "regexp"

var (
	// placeName matches names of attributes with a description of the sender, such as
	// host, or with the address for a reply, such as reply_to.
	placeName = regexp.MustCompile(`(?i)(^|[_.-])(region|host|hostname|node|zone|env|environment|stage|pod|cluster|instance|datacenter|user[_.-]?agent)$` +
		`|^(reply|respond|answer)[_.-]?(to|queue|url|topic)$|^callback([_.-]?url)?$`)

	// bodyName matches names of parameters and fields that probably contain a complete
	// message body, such as payload or msgBody.
	bodyName = regexp.MustCompile(`(?i)^(msg|message)?_?(body|payload|content|contents|json|raw|data)$|(body|payload|JSON)$|^(msg|message)$`)
)
