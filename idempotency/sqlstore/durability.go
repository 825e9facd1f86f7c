package sqlstore

import "fmt"

// SettingError is a setting of the database or of [Config] under which the store would
// not keep its promises.
type SettingError struct {
	Setting string // for example "synchronous"
	Found   string
	Rule    string // what is wanted, and the way to get it
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("sqlstore: %s is %s: %s", e.Setting, e.Found, e.Rule)
}
