module github.com/kansas-frontier-matrix/sqsfifo

go 1.26.0

require github.com/aws/aws-sdk-go-v2/service/sqs v0.0.0
