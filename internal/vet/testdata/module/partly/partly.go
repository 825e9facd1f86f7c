package partly

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func First(client any) {
	//sqsfifo:ignore SF020 -- a demonstration
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}

func Second(client any) {
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{}) // want SF020: package partly
}

func Third(client any) {
	//sqsfifo:ignore SF020 -- used, though the finding stands elsewhere
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}
