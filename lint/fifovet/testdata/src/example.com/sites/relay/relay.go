// Package relay wraps a wrapper. // want package:"reach"
package relay

import (
	"context"

	"example.com/sites/mail"
)

// Relay passes letters on.
type Relay struct{ office *mail.Office }

// Pass knows nothing of the AWS SDK.
func (r *Relay) Pass(ctx context.Context, route, text string, labels map[string]string) error { // want Pass:"sink"
	return r.office.Deliver(ctx, mail.Letter{Route: route, Text: text, Labels: labels})
}
