// Package backoffice is a stand-in whose name and functions look like something else.
package backoffice

var settings = map[string]string{}

// WithTx calls f in a transaction, once.
func WithTx(f func() error) error { return f() }

// OnRetry calls f when somebody tries again.
func OnRetry(f func() error) error { return f() }

// Lookup returns a setting.
func Lookup(name string) *string {
	v := settings[name]
	return &v
}
