package ignored

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func Above(client any) {
	//sqsfifo:ignore SF002, SF020 -- a demonstration that is never deployed
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}

func Beside(client any) {
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{}) //nolint:errcheck,sqsfifo // a demonstration
}

func Lint(client any) {
	//lint:ignore SF020 a demonstration
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}

func Everything(client any) {
	//nolint // every linter
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{}) //nolint:all
}
