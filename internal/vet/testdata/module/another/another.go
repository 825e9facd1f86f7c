// Package another constructs through a package of its own, whose tests are asked for.
package another

import "example.com/shop/tested"

type own struct{}

func (own) NewProducer() {}

func New(client any) error {
	own{}.NewProducer()
	_, err := tested.New(client)
	return err
}
