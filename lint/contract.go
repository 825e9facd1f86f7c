package lint

import (
	"cmp"
	"fmt"
	"strings"
)

// KFM is the organization of the Kansas Frontier Matrix.
const KFM = "kfm"

// Contract is the KFM contract. The zero value is the contract for events of every
// organization.
type Contract struct {
	// Organization is the only accepted first label of event_source, the text before the
	// first dot. Empty accepts every organization.
	Organization string
}

// CheckOrganization returns nil if c.Organization can be the first label of an
// event_source, or is empty. Otherwise it returns findings of rule SF043 (event-source).
func (c Contract) CheckOrganization() []Finding {
	if fault := labelFault(c.Organization); c.Organization != "" && fault != "" {
		return []Finding{found(invalidEventSource, "organization", "the organization "+quote(c.Organization)+fault)}
	}
	return nil
}

// CheckBody is like [Check] for a consumer, which has only a message's body. It checks
// form, characters and envelope.
func (c Contract) CheckBody(body string) []Finding {
	_, fs := c.checkBody(body)
	sortFindings(fs)
	return fs
}

func (c Contract) checkBody(text string) (body, []Finding) {
	b, fs := readBody(text)
	return b, append(append(fs, checkCharacters(b)...), c.checkEnvelope(b)...)
}

// CheckSource checks an event source before an event exists. It returns nil for a valid
// source. Otherwise it returns the findings of rule SF043 (event-source) that [Check] has
// for a message with this source.
func (c Contract) CheckSource(source string) []Finding {
	if fault := c.sourceFault(source); fault != "" {
		return []Finding{found(invalidEventSource, "event_source", fault)}
	}
	return nil
}

func (c Contract) sourceFault(source string) string {
	labels := strings.Split(source, ".")
	if len(labels) != 3 {
		return fmt.Sprintf("event_source %s does not have the form %s.<domain>.<pipeline>", quote(source), cmp.Or(c.Organization, "<organization>"))
	}
	for _, label := range labels {
		if fault := labelFault(label); fault != "" {
			return fmt.Sprintf("event_source %s has the label %s%s", quote(source), quote(label), fault)
		}
	}
	if c.Organization != "" && labels[0] != c.Organization {
		return fmt.Sprintf("event_source %s is of the organization %q, and only %q is accepted here; if the source is right, set Organization to %[2]q", quote(source), labels[0], c.Organization)
	}
	return ""
}

// labelFault returns "" for a valid label of an event source. For an invalid label, it
// returns the end of an error text, for example ", which is empty".
func labelFault(label string) string {
	for _, c := range label {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Sprintf(", which has %q; use lower-case letters, digits and hyphens only", c)
		}
	}
	switch {
	case label == "":
		return ", which is empty"
	case label[0] == '-' || label[len(label)-1] == '-':
		return ", which begins or ends with a hyphen"
	}
	return ""
}
