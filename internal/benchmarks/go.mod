module github.com/kansas-frontier-matrix/sqsfifo/internal/benchmarks

go 1.26.0

replace github.com/kansas-frontier-matrix/sqsfifo => ../..

require (
	github.com/coocood/freecache v1.2.7
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/gowebpki/jcs v1.0.2
	github.com/kansas-frontier-matrix/sqsfifo v0.0.0-00010101000000-000000000000
	github.com/maypok86/otter/v2 v2.4.0
)

require github.com/cespare/xxhash/v2 v2.3.0 // indirect
