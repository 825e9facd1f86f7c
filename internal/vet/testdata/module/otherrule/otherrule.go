package otherrule

import "github.com/kansas-frontier-matrix/sqsfifo"

type Order struct{ ID string }

func OtherRule(client any) {
	//sqsfifo:ignore SF002 -- not the rule that reports; the next line is no directive
	//nolinter would say it
	sqsfifo.NewProducer(client, sqsfifo.Config[Order]{}) //nolint:errcheck // want SF020: package otherrule
}
