"""Counts runs, outcomes, duplicates and replays in OpenLineage events or in a PROV-JSON document.

It shares no code with the module. Each event has to have what the OpenLineage schema 2-0-2
requires, and each relation of the document has to name things that the document declares.
"""
import collections
import json
import sys
import uuid
from datetime import datetime

counts = collections.Counter()


def count(run):
    counts["runs"] += 1
    counts[run["outcome"]] += 1
    counts.update(flag for flag in ("duplicate_detected", "replay_triggered") if run[flag])


def openlineage(lines):
    open_runs = {}
    for event in map(json.loads, lines):
        datetime.fromisoformat(event["eventTime"].replace("Z", "+00:00"))
        assert event["producer"].startswith("https://") and event["schemaURL"].endswith("#/$defs/RunEvent")
        run = uuid.UUID(event["run"]["runId"])
        assert event["job"]["namespace"] and event["job"]["name"]
        for dataset in event["inputs"] + event["outputs"]:
            assert dataset["namespace"] and dataset["name"]
        for holder in [event["run"]] + event["inputs"] + event["outputs"]:
            for facet in holder["facets"].values():
                assert facet["_producer"].startswith("https://") and facet["_schemaURL"].startswith("https://")
        if event["eventType"] == "START":
            assert run not in open_runs
            open_runs[run] = event
            continue
        assert event["eventType"] in ("COMPLETE", "FAIL", "OTHER") and open_runs.pop(run)
        record = event["run"]["facets"]["sqsfifo_record"]
        assert bool(event["outputs"]) == (record["outcome"] == "stored")
        count(record)
    assert not open_runs


def prov(document):
    kinds = {"prov:activity": "activity", "prov:agent": "agent"}
    for relation in ("used", "wasGeneratedBy", "wasAssociatedWith", "wasDerivedFrom"):
        for ends in document.get(relation, {}).values():
            for end, name in ends.items():
                assert end == "prov:time" or name in document[kinds.get(end, "entity")], name
    for kind in ("activity", "agent", "entity"):
        assert all(name.split(":")[0] in document["prefix"] for name in document[kind])
    generated = {relation["prov:activity"] for relation in document["wasGeneratedBy"].values()}
    for name, activity in document["activity"].items():
        run = {field.removeprefix("sqsfifo:"): value for field, value in activity.items()}
        assert (name in generated) == (run["outcome"] == "stored")
        count(run)
    try:
        import prov.model  # the reference implementation, if it is installed
    except ImportError:
        return
    read = prov.model.ProvDocument.deserialize(content=json.dumps(document), format="json")
    assert len(list(read.get_records(prov.model.ProvActivity))) == counts["runs"]


with open(sys.argv[1], encoding="utf-8") as file:
    if sys.argv[1].endswith(".jsonl"):
        openlineage(file)
    else:
        prov(json.load(file))
print(json.dumps(counts))
