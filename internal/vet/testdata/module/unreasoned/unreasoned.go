package unreasoned

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func Unreasoned(client any) {
	//sqsfifo:ignore SF020 --
	//lint:ignore SF020
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{}) // want SF020: package unreasoned
}
