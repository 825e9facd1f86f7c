package otherwise

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func New(client any) (*sqsfifo.Producer[Order], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}
