# Snippets for the rules of fifo.yaml: "ruleid" stands above a line with a finding, "ok"
# above a line without one.
import datetime
import hashlib
import json
import time
import uuid


def attribute_only(sqs, url, scene):
    # ruleid: sf001-attr-only-identity-python
    sqs.send_message(
        QueueUrl=url,
        MessageGroupId=scene.tile,
        MessageBody=json.dumps({"tile": scene.tile}),
        MessageAttributes={"unique_key": {"DataType": "String", "StringValue": scene.id}},
    )


def attribute_copy(sqs, url, scene):
    # ok: sf001-attr-only-identity-python
    sqs.send_message(
        QueueUrl=url,
        MessageGroupId=scene.tile,
        MessageBody=json.dumps({"dedupe_key": scene.id}),
        MessageAttributes={"unique_key": {"DataType": "String", "StringValue": scene.id}},
    )


def routing_hint(sqs, url, scene):
    # ok: sf001-attr-only-identity-python
    sqs.send_message(
        QueueUrl=url,
        MessageGroupId=scene.tile,
        MessageBody=json.dumps({"tile": scene.tile}),
        MessageAttributes={"platform": {"DataType": "String", "StringValue": scene.platform}},
    )


def random_id(sqs, url, body):
    # ruleid: sf002-nondeterministic-dedup-id-python
    sqs.send_message(QueueUrl=url, MessageGroupId="g", MessageBody=body, MessageDeduplicationId=str(uuid.uuid4()))


def clock_id(sqs, url, body):
    minted = f"scene-{time.time_ns()}"
    # ruleid: sf002-nondeterministic-dedup-id-python
    sqs.send_message(QueueUrl=url, MessageGroupId="g", MessageBody=body, MessageDeduplicationId=minted)


def batch_id(sqs, url, body):
    # ruleid: sf002-nondeterministic-dedup-id-python
    entry = {"Id": "1", "MessageBody": body, "MessageGroupId": "g", "MessageDeduplicationId": str(uuid.uuid4())}
    sqs.send_message_batch(QueueUrl=url, Entries=[entry])


def hash_id(sqs, url, body):
    # ok: sf002-nondeterministic-dedup-id-python
    sqs.send_message(QueueUrl=url, MessageGroupId="g", MessageBody=body, MessageDeduplicationId=hashlib.sha256(body.encode()).hexdigest())


def clock_in_body(sqs, url, scene):
    # ruleid: sf012-volatile-body-python
    sqs.send_message(QueueUrl=url, MessageGroupId="g", MessageBody=json.dumps({"id": scene.id, "sent": datetime.datetime.now().isoformat()}))


def event_time_in_body(sqs, url, scene):
    # ok: sf012-volatile-body-python
    sqs.send_message(QueueUrl=url, MessageGroupId="g", MessageBody=json.dumps({"id": scene.id, "acquired": scene.acquired}))


def random_event_id(scene):
    # ruleid: random-event-id-python
    return {"event_id": str(uuid.uuid4()), "payload": scene}


def random_event_id_later(envelope):
    # ruleid: random-event-id-python
    envelope["event_id"] = str(uuid.uuid4())


def stored_event_id(scene):
    # ok: random-event-id-python
    return {"event_id": scene.event_id, "request_id": str(uuid.uuid4())}
