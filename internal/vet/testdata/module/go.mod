module example.com/shop

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2/service/sqs v0.0.0
	github.com/kansas-frontier-matrix/sqsfifo v0.0.0
)

replace (
	github.com/aws/aws-sdk-go-v2/service/sqs => ./sqs
	github.com/kansas-frontier-matrix/sqsfifo => ./sqsfifo
)
