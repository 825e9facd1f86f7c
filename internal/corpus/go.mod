module github.com/kansas-frontier-matrix/sqsfifo/internal/corpus

go 1.26.0

require (
	github.com/kansas-frontier-matrix/sqsfifo v0.0.0
	golang.org/x/mod v0.42.0
	golang.org/x/tools v0.52.0
)

require golang.org/x/sync v0.24.0 // indirect

replace github.com/kansas-frontier-matrix/sqsfifo => ../..
