package sqstest

// Must returns v, or panics if err is not nil. It shortens examples and the setup of tests:
//
//	queue := sqstest.Must(sqstest.NewQueue(sqstest.Config{}))
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
