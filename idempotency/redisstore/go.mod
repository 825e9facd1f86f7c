module github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore

go 1.26.0

replace (
	github.com/kansas-frontier-matrix/sqsfifo => ../..
	github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest => ../storetest
)

require (
	github.com/kansas-frontier-matrix/sqsfifo v0.0.0-00010101000000-000000000000
	github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest v0.0.0-00010101000000-000000000000
	github.com/redis/go-redis/v9 v9.22.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	go.uber.org/atomic v1.11.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
