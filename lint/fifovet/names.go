package fifovet

import "regexp"

// Where neither types nor facts say what something is, its name has to. These are
// all the names that count; TestNames has cases for each.
var (
	// idPackage matches packages that make identifiers, whoever wrote them; a major
	// version at the end of the path is cut off before.
	idPackage    = regexp.MustCompile(`(^|[^a-z])(short)?(uuid|guid|ulid|ksuid|xid|nanoid|cuid2?|shortid|uniuri)$`)
	majorVersion = regexp.MustCompile(`(/v[0-9]+|\.v[0-9]+)$`)

	// clockName and mintName match variables that hold functions without parameters.
	clockName = regexp.MustCompile(`(?i)^(now|clock|time)$|now$`)
	mintName  = regexp.MustCompile(`(?i)^(new|gen|generate|make|random|mint|next)_?(event|message|msg|dedup|request)?_?(uuid|guid|ulid|ksuid|id)$` +
		`|^(uuid|guid|ulid|ksuid|id)_?(gen|generator|source)$|^(uuid|guid|ulid|ksuid)$`)

	// newIDName and generatorType match a method that makes identifiers, and the
	// interface that it belongs to.
	newIDName     = regexp.MustCompile(`(?i)^(new|gen|generate|random|mint)_?(event|message|msg|dedup)?_?(uuid|guid|ulid|ksuid|id)?$`)
	generatorType = regexp.MustCompile(`^(?i:(id|identifier|uuid|guid|ulid)s?(gen|generator|source|factory|provider|maker|minter)?|generator)$` +
		`|[a-z](ID|Identifier|UUID|GUID|ULID)s?(Gen|Generator|Source|Factory|Provider|Maker|Minter)?$`)

	// makerName matches functions that may return another object at each call.
	makerName = regexp.MustCompile(`(?i)^(new|next|gen|make|create|mint|rand)`)

	// settingsName matches types that hold settings.
	settingsName = regexp.MustCompile(`(?i)opt|config|setting`)

	// linkedName matches variables that the linker sets (-ldflags -X).
	linkedName = regexp.MustCompile(`(?i)version|commit|revision|build`)

	// pointerHelperName is what functions from T to *T are called: Ptr, StringPtr,
	// ToString, Of, P. A function of the form that is called Lookup looks something up.
	pointerHelperName = regexp.MustCompile(`(?i)ptr|pointer|ref|string|^str$|val|bool|int|float|time|^(to|of|p|s|v|addr|new|from)$`)

	// retryName matches functions that call one of their arguments until it succeeds,
	// and hookName those that call it once, when something happened.
	retryName = regexp.MustCompile(`[Rr]etry|[Bb]ackoff($|[^a-z])|[Aa]ttempt`)
	hookName  = regexp.MustCompile(`^(On|After|Before)[A-Z]`)

	// placeName matches attributes that say where something runs or where an answer
	// goes; attributes that identify an event or an attempt are known to attrname.
	placeName = regexp.MustCompile(`(?i)(^|[_.-])(region|host|hostname|node|zone|env|environment|stage|pod|cluster|instance|datacenter|user[_.-]?agent)$` +
		`|^(reply|respond|answer)[_.-]?(to|queue|url|topic)$|^callback([_.-]?url)?$`)

	// memberName matches members of a body that tell it from others, of whatever they
	// are the ID.
	memberName = regexp.MustCompile(`^(id|ID|Id|uid|key|Key)$|(?i:^(u|g|ul)uid$|ulid$|[_.-](id|key|uuid|guid)$)|[a-z](ID|Id|UUID|Uuid|Key)$`)

	// eventType matches types whose own ID is that of the event.
	eventType = regexp.MustCompile(`(?i)(event|message|msg|envelope|job|command|notification|record)$`)

	// bodyName matches parameters and fields that hold a whole body.
	bodyName = regexp.MustCompile(`(?i)^(msg|message)?_?(body|payload|content|contents|json|raw|data)$|(body|payload|JSON)$|^(msg|message)$`)
)
