"""Injects faults over HTTP into the queue whose endpoint and URL are given, sends
through them and prints what it saw."""

import json
import sys
import urllib.request

import boto3
from botocore.config import Config

endpoint, queue_url = sys.argv[1:]
client = boto3.client(
    "sqs",
    endpoint_url=endpoint,
    region_name="us-east-1",
    aws_access_key_id="any",
    aws_secret_access_key="any",
    config=Config(retries={"mode": "standard", "max_attempts": 3}),
)


def faults(method, body=None):
    request = urllib.request.Request(
        endpoint + "/_sqsfifo/faults",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


faults("POST", {"fault": "lose_answer"})
lost = client.send_message(QueueUrl=queue_url, MessageBody="lost", MessageGroupId="g")

faults("POST", {"fault": "throttle"})
throttled = client.send_message(QueueUrl=queue_url, MessageBody="throttled", MessageGroupId="g")

faults("POST", {"fault": "fail_entries", "code": "Broken", "entry_ids": ["2"]})
batch = client.send_message_batch(
    QueueUrl=queue_url,
    Entries=[{"Id": i, "MessageBody": "entry " + i, "MessageGroupId": "g"} for i in ("1", "2")],
)

faults("POST", {"fault": "server_error", "calls": 7})
waiting = [[f["fault"], f["calls"]] for f in faults("GET")]
removed = faults("DELETE")["removed"]

print(json.dumps({
    "lost": lost["MessageId"],
    "throttled": throttled["MessageId"],
    "failed": [[f["Id"], f["Code"]] for f in batch["Failed"]],
    "waiting": waiting,
    "removed": removed,
}))
