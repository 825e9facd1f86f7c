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

	// identityName matches attributes that identify the event.
	identityName = regexp.MustCompile(`(?i)(event|message|msg|dedup(e|lication)?|unique(ness)?|idempotency|correlation|request|txn|transaction|job|command)[_.-]?(id|key|uuid|name)$|uuid$`)
)
