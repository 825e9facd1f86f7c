package otherrule

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func OtherRule(client any) {
	//sqsfifo:ignore SF002 -- not the rule that reports
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{}) //nolint:errcheck // want SF020: package otherrule
}
