// Command local has events of a type that only one of its functions can name.
package main

import "github.com/kansas-frontier-matrix/sqsfifo"

func main() {
	type order struct{ ID string }
	sqsfifo.NewProducer(nil, sqsfifo.Config[*order]{}) // want SF020: package main
}
