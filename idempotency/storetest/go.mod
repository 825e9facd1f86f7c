module github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest

go 1.26.0

replace github.com/kansas-frontier-matrix/sqsfifo => ../..

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/kansas-frontier-matrix/sqsfifo v0.0.0-00010101000000-000000000000
)
