"""A producer for "sqsfifo compliance": sends the events of standard input with boto3.

    sqsfifo compliance --events ../events.jsonl -- python3 producer.py
"""
import json
import os
import sys

import boto3

import kfm_message as kfm

client = boto3.client("sqs")
for line in sys.stdin:
    event = json.loads(line)
    organization = event["source"].split(".")[0]
    body = kfm.envelope(event["source"], kfm.join_key(*event["key"]), event["time"], event["payload"], organization=organization)
    kfm.send(client, os.environ["SQSFIFO_QUEUE_URL"], kfm.message(body, event["group"], event.get("attributes")))
    print("sent", flush=True)
