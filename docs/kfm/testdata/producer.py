"""The producer of the tests: reference/python over a client of the standard library.

With an argument the producer makes a mistake: SF001, SF002, SF012 or random-id.
"""
import datetime
import json
import os
import sys
import urllib.request
import uuid

sys.path.insert(0, os.environ["KFM_REFERENCE"])
import kfm_message as kfm


class Client:
    def send_message(self, **request):
        headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"}
        asked = urllib.request.Request(os.environ["AWS_ENDPOINT_URL_SQS"] + "/", json.dumps(request).encode(), headers)
        with urllib.request.urlopen(asked) as answer:
            return json.load(answer)


mistake = sys.argv[1] if sys.argv[1:] else ""
client = Client()
for line in sys.stdin:
    event = json.loads(line)
    key, payload, attributes = kfm.join_key(*event["key"]), event["payload"], event.get("attributes", {})
    if mistake == "SF001":  # what identifies the event stands in an attribute alone
        body = kfm.envelope("kfm.a.b", "refresh", "2025-12-04T17:03:21Z", {"state": "new"})
        parameters = kfm.message(body, event["group"])
        parameters["MessageAttributes"] = {"unique_key": {"DataType": "String", "StringValue": key}}
    else:
        if mistake == "SF012":  # a clock reading in the body
            payload = dict(payload, sent_at=datetime.datetime.now(datetime.timezone.utc).isoformat())
        stored_id = None
        if mistake == "random-id":  # a fresh event_id for each attempt
            fresh = uuid.uuid4().hex
            stored_id = f"{fresh[:8]}-{fresh[8:12]}-7{fresh[13:16]}-8{fresh[17:20]}-{fresh[20:]}"
        body = kfm.envelope(event["source"], key, event["time"], payload, stored_id, event["source"].split(".")[0])
        parameters = kfm.message(body, event["group"], attributes)
        if mistake == "SF002":  # a random deduplication ID
            parameters["MessageDeduplicationId"] = str(uuid.uuid4())
    kfm.send(client, os.environ["SQSFIFO_QUEUE_URL"], parameters)
    print("sent", flush=True)
