package untested

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func New(client any) (*sqsfifo.Producer[Order], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Order]{}) // want SF020: package untested constructs a producer and no test of the package calls compliance.TestProducer
}
