package unused

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func New(client any) (*sqsfifo.Producer[Order], error) {
	//sqsfifo:ignore SF020 -- there is a test since // want unused-ignore: SF020 does not report here
	return sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}

//nolint:sqsfifo // of the other tools' directives their owners report the unused ones
var _ = 0
