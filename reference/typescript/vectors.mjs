// Runs vectors against kfm_message.js.
//
//	node vectors.mjs ../../docs/kfm/vectors/*.jsonl    prints each case that fails, and counts
//	node vectors.mjs --answers < cases.jsonl           prints one answer for each line
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { isDeepStrictEqual } from "node:util";
import * as kfm from "./kfm_message.js";

// A text of a vector is a string, bytes in base64, or runs of a text.
function text(value) {
  if (typeof value !== "object") return value;
  if ("base64" in value) return Buffer.from(value.base64, "base64");
  return value.runs.map(([part, count]) => part.repeat(count)).join("");
}

const envelope = (v) =>
  kfm.envelope({
    source: v.event_source,
    key: text(v.dedupe_key),
    time: v.event_time,
    payload: kfm.parse(text(v.payload)),
    storedID: v.event_id,
    organization: v.organization,
  });

function message(v) {
  const sent = kfm.message(envelope(v), v.group, v.attributes);
  const out = { body: sent.MessageBody, group: sent.MessageGroupId, deduplication_id: sent.MessageDeduplicationId };
  const attributes = Object.entries(sent.MessageAttributes ?? {}).map(([name, value]) => [name, value.StringValue]);
  return attributes.length ? { ...out, attributes: Object.fromEntries(attributes) } : out;
}

const operations = {
  canonicalize: (v) => kfm.canonicalize(text(v.text)),
  hash: (v) => ({ sha256: kfm.bodyHash(text(v.text)), md5: kfm.bodyMD5(text(v.text)) }),
  join_key: (v) => kfm.joinKey(...v.parts.map(text)),
  check_key: (v) => kfm.checkKey(text(v.key)),
  event_time: (v) => kfm.eventTime(v.time ?? ""),
  event_id: (v) => kfm.eventID(v.event_source, text(v.dedupe_key), v.event_time),
  check_source: (v) => kfm.checkSource(v.event_source, v.organization),
  envelope,
  check_body: (v) => Boolean(kfm.checkBody(text(v.text), v.organization)),
  dataset: (v) => kfm.dataset(text(v.dataset_id), text(v.version), text(v.source_uri), v.query_parameters),
  check_dataset_key: (v) => kfm.checkDatasetKey(v.key),
  message,
};

function answer(vector) {
  try {
    return { out: operations[vector.op](vector.in) };
  } catch (error) {
    return error instanceof kfm.ContractError ? { refused: error.rule } : { crashed: String(error) };
  }
}

function expand(out) {
  if (typeof out !== "object" || "runs" in out || "base64" in out) return text(out);
  return Object.fromEntries(Object.entries(out).map(([name, value]) => [name, expand(value)]));
}

function fails(vector) {
  const got = answer(vector);
  return "refused" in vector ? got.refused !== vector.refused : !isDeepStrictEqual(got.out, expand(vector.out));
}

const files = process.argv.slice(2);
if (files[0] === "--answers") {
  for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(answer(JSON.parse(line))));
} else {
  const vectors = files.flatMap((file) => readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line)));
  const failed = vectors.filter(fails);
  for (const v of failed) console.log(v.id, v.op, JSON.stringify(v.in).slice(0, 200), "->", JSON.stringify(answer(v)).slice(0, 200));
  console.log(`${vectors.length - failed.length} passed, ${failed.length} failed`);
  process.exitCode = failed.length || !vectors.length ? 1 : 0;
}
