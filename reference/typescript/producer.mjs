// A producer for "sqsfifo compliance": sends the events of standard input with
// @aws-sdk/client-sqs.
//
//	sqsfifo compliance --events ../events.jsonl -- node producer.mjs
import { SQS } from "@aws-sdk/client-sqs";
import { createInterface } from "node:readline";
import * as kfm from "./kfm_message.js";

const client = new SQS({});
for await (const line of createInterface({ input: process.stdin })) {
  const event = JSON.parse(line);
  const organization = event.source.split(".")[0];
  const body = kfm.envelope({ ...event, organization, key: kfm.joinKey(...event.key) });
  await kfm.send(client, process.env.SQSFIFO_QUEUE_URL, kfm.message(body, event.group, event.attributes));
  console.log("sent");
}
