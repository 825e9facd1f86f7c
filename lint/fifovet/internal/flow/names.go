package flow

import "regexp"

// These regular expressions guess the purpose of a function, type or variable from its
// name, where no better information is available. TestNames has examples for each
// expression.
var (
	// idPackage matches paths of packages that make identifiers. Callers first remove a
	// major version such as /v2.
	idPackage    = regexp.MustCompile(`(^|[^a-z])(short)?(uuid|guid|ulid|ksuid|xid|nanoid|cuid2?|shortid|uniuri)$`)
	majorVersion = regexp.MustCompile(`(/v[0-9]+|\.v[0-9]+)$`)

	// clockName and mintName match variables that hold functions without parameters.
	clockName = regexp.MustCompile(`(?i)^(now|clock|time)$|now$`)
	mintName  = regexp.MustCompile(`(?i)^(new|gen|generate|make|random|mint|next)_?(event|message|msg|dedup|request)?_?(uuid|guid|ulid|ksuid|id)$` +
		`|^(uuid|guid|ulid|ksuid|id)_?(gen|generator|source)$|^(uuid|guid|ulid|ksuid)$`)

	// makerName matches functions that may return a different object at each call.
	makerName = regexp.MustCompile(`(?i)^(new|next|gen|make|create|mint|rand)`)

	// SettingsName matches types that hold settings.
	SettingsName = regexp.MustCompile(`(?i)opt|config|setting`)

	// DeadLetterName matches functions, types and packages that put messages into a queue of
	// dead letters, or back from there.
	DeadLetterName = regexp.MustCompile(`(?i)dlq|dead_?letter|redrive`)

	// doubleName matches types that replace other types in tests.
	doubleName = regexp.MustCompile(`(?i)^(mock|fake|stub|noop|nop|dummy|spy)|(mock|fake|stub|spy)$`)

	// mutatorName matches functions that write to their arguments or their receiver.
	mutatorName = regexp.MustCompile(`^(Put|Encode|Execute|Set|Add|Merge|Insert|Copy|NewEncoder|Marshal)`)

	// testTag matches build tags for tests. It compares whole words: latest, contest and
	// attestation do not mean tests.
	testTag = regexp.MustCompile(`(?i)(^|[_.])(tests?|testing|integration(tests?)?|e2e(tests?)?|unittests?)($|[_.])`)

	// setterName matches methods that store their arguments in the receiver.
	setterName = regexp.MustCompile(`^(Set|With|Add|Put|Append|Insert)[A-Z]`)

	// linkedName matches variables set by the linker (-ldflags -X).
	linkedName = regexp.MustCompile(`(?i)version|commit|revision|build`)

	// pointerHelperName matches names of functions that only convert T to *T or *T to T.
	// Functions with these types and another name, such as Lookup, probably do more.
	pointerHelperName = regexp.MustCompile(`(?i)ptr|pointer|ref|string|^str$|val|bool|int|float|time|^(to|of|p|s|v|addr|new|from)$`)

	// retryName matches functions that call an argument until it succeeds. hookName matches
	// functions that call an argument once, after an event.
	retryName = regexp.MustCompile(`[Rr]etry|[Bb]ackoff($|[^a-z])|[Aa]ttempt`)
	hookName  = regexp.MustCompile(`^(On|After|Before)[A-Z]`)
)
