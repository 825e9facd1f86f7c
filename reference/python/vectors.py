"""Runs vectors against kfm_message.py.

    python3 vectors.py ../../docs/kfm/vectors/*.jsonl    prints each case that fails, and counts
    python3 vectors.py --answers < cases.jsonl           prints one answer for each line
"""
import base64
import json
import sys

import kfm_message as kfm


def text(value):
    """Returns a string of a vector: a string, bytes in base64, or runs of a text."""
    if not isinstance(value, dict):
        return value
    if "base64" in value:
        return base64.b64decode(value["base64"])
    return "".join(part * count for part, count in value["runs"])


def envelope(case):
    payload = kfm.parse(text(case["payload"]))
    organization = case.get("organization", "kfm")
    return kfm.envelope(case["event_source"], text(case["dedupe_key"]), case["event_time"], payload, case.get("event_id"), organization)


def message(case):
    sent = kfm.message(envelope(case), case["group"], case.get("attributes"))
    out = {"body": sent["MessageBody"], "group": sent["MessageGroupId"], "deduplication_id": sent["MessageDeduplicationId"]}
    if "MessageAttributes" in sent:
        out["attributes"] = {name: value["StringValue"] for name, value in sent["MessageAttributes"].items()}
    return out


OPERATIONS = {
    "canonicalize": lambda case: kfm.canonicalize(text(case["text"])),
    "hash": lambda case: {"sha256": kfm.body_hash(text(case["text"])), "md5": kfm.body_md5(text(case["text"]))},
    "join_key": lambda case: kfm.join_key(*map(text, case["parts"])),
    "check_key": lambda case: kfm.check_key(text(case["key"])),
    "event_time": lambda case: kfm.event_time(case.get("time", "")),
    "event_id": lambda case: kfm.event_id(case["event_source"], text(case["dedupe_key"]), case["event_time"]),
    "check_source": lambda case: kfm.check_source(case["event_source"], case.get("organization")),
    "envelope": envelope,
    "check_body": lambda case: bool(kfm.check_body(text(case["text"]), case.get("organization"))),
    "dataset": lambda case: kfm.dataset(text(case["dataset_id"]), text(case["version"]), text(case["source_uri"]), case.get("query_parameters", ())),
    "check_dataset_key": lambda case: kfm.check_dataset_key(case["key"]),
    "message": message,
}


def answer(vector):
    try:
        return {"out": OPERATIONS[vector["op"]](vector["in"])}
    except kfm.ContractError as error:
        return {"refused": error.rule}
    except Exception as error:  # an implementation with a fault
        return {"crashed": repr(error)}


def fails(vector):
    got = answer(vector)
    if "refused" in vector:
        return got.get("refused") != vector["refused"]
    return "out" not in got or got["out"] != expand(vector["out"])


def expand(out):
    """Returns an output with its texts written out."""
    if isinstance(out, dict) and "runs" not in out:
        return {name: expand(value) for name, value in out.items()}
    return text(out)


def main(arguments):
    if arguments == ["--answers"]:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line))))
        return 0
    failed = passed = 0
    for file in arguments:
        with open(file, encoding="utf-8") as lines:
            for vector in map(json.loads, lines):
                if fails(vector):
                    failed += 1
                    print(vector["id"], vector["op"], json.dumps(vector["in"])[:200], "->", str(answer(vector))[:200])
                else:
                    passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
