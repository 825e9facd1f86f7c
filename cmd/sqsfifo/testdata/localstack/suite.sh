#!/bin/sh
# A suite in the style of scripts for LocalStack, with curl alone: it waits for the health
# check, makes queues, sends, looks at the messages, receives, purges and deletes.
set -eu
endpoint=${LOCALSTACK_ENDPOINT:-http://localhost:4566}
call() {
	curl -sS -f -X POST "$endpoint/${3:-}" -H "X-Amz-Target: AmazonSQS.$1" -H 'Content-Type: application/x-amz-json-1.0' \
		-H 'Authorization: AWS4-HMAC-SHA256 Credential=test/20250101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=test' -d "$2"
}
expect() { case $2 in *"$1"*) ;; *) echo "expected $1 in: $2" >&2 && exit 1 ;; esac; }

tries=0
until curl -s -f "$endpoint/_localstack/health" | grep -q '"sqs"'; do
	tries=$((tries + 1)) && [ $tries -lt 50 ] && sleep 0.1
done
for round in 1 2; do
	expect QueueUrl "$(call CreateQueue '{"QueueName": "jobs.fifo", "Attributes": {"FifoQueue": "true", "ContentBasedDeduplication": "true"}}')"
	url="$endpoint/queue/us-east-1/000000000000/jobs.fifo"
	expect MessageId "$(call SendMessage "{\"QueueUrl\": \"$url\", \"MessageBody\": \"job $round\", \"MessageGroupId\": \"g\"}" queue/us-east-1/000000000000/jobs.fifo)"
	expect "<Body>job $round</Body>" "$(curl -sS -f "$endpoint/_aws/sqs/messages?QueueUrl=$url")"
	expect "\"Body\":\"job $round\"" "$(curl -sS -f -H 'Accept: application/json' "$endpoint/_aws/sqs/messages?QueueUrl=$url")"
	expect "job $round" "$(call ReceiveMessage "{\"QueueUrl\": \"$url\"}")"
	call PurgeQueue "{\"QueueUrl\": \"$url\"}"
	call PurgeQueue "{\"QueueUrl\": \"$url\"}"
	call DeleteQueue "{\"QueueUrl\": \"$url\"}"
done
echo passed
