package lint

import (
	"fmt"
	"strings"
)

// KFM is the default organization, the Kansas Frontier Matrix.
const KFM = "kfm"

// Contract is the KFM contract of one organization. The zero value is the contract of
// the Kansas Frontier Matrix.
type Contract struct {
	// Organization is the first label of each event_source, the text before the first dot.
	// Empty means [KFM].
	Organization string
}

func (c Contract) organization() string {
	if c.Organization == "" {
		return KFM
	}
	return c.Organization
}

// CheckOrganization returns nil if c.Organization can be the first label of an
// event_source, else findings of rule SF043 (event-source). An empty Organization stands
// for [KFM].
func (c Contract) CheckOrganization() []Finding {
	if fault := labelFault(c.organization()); fault != "" {
		return []Finding{found(invalidEventSource, "organization", "the organization "+quote(c.organization())+fault)}
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
	if labels[0] != c.organization() || len(labels) != 3 {
		fault := fmt.Sprintf("event_source %s does not have the form %s.<domain>.<pipeline>", quote(source), c.organization())
		if of := (Contract{Organization: labels[0]}); c.Organization == "" && labels[0] != "" && labels[0] != KFM && of.sourceFault(source) == "" {
			fault += fmt.Sprintf("; for events of another organization set Organization to %q (in a command: --organization %[1]s)", labels[0])
		}
		return fault
	}
	for _, label := range labels[1:] {
		if fault := labelFault(label); fault != "" {
			return fmt.Sprintf("event_source %s has the label %s%s", quote(source), quote(label), fault)
		}
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
