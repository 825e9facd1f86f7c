// Package sqs has the name of the AWS SDK's client, and nothing behind it.
package sqs

type Client struct{}
