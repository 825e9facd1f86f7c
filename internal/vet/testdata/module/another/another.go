// Package another constructs through a package of its own, whose tests are asked for.
package another

import "example.com/shop/tested"

func NewProducer(client any) error {
	_, err := tested.New(client)
	return err
}

var New = NewProducer
