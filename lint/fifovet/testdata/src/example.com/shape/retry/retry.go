// Package retry calls functions until they succeed.
package retry

func Do(f func() error) error {
	var err error
	for range 5 {
		if err = f(); err == nil {
			return nil
		}
	}
	return err
}
