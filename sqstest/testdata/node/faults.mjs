// Injects faults over HTTP into the queue whose endpoint and URL are given, sends
// through them and prints what it saw.
import { SendMessageBatchCommand, SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";

const [endpoint, QueueUrl] = process.argv.slice(2);
const client = new SQSClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "any", secretAccessKey: "any" },
});

const faults = async (method, body) => {
  const answer = await fetch(new URL("/_sqsfifo/faults", endpoint), { method, body: body && JSON.stringify(body) });
  return answer.json();
};
const send = (MessageBody) => client.send(new SendMessageCommand({ QueueUrl, MessageBody, MessageGroupId: "g" }));

await faults("POST", { fault: "lose_answer" });
const lost = await send("lost");

await faults("POST", { fault: "throttle" });
const throttled = await send("throttled");

await faults("POST", { fault: "fail_entries", code: "Broken", entry_ids: ["2"] });
const batch = await client.send(new SendMessageBatchCommand({
  QueueUrl,
  Entries: ["1", "2"].map((Id) => ({ Id, MessageBody: `entry ${Id}`, MessageGroupId: "g" })),
}));

await faults("POST", { fault: "server_error", calls: 7 });
const waiting = (await faults("GET")).map(({ fault, calls }) => [fault, calls]);
const { removed } = await faults("DELETE");

console.log(JSON.stringify({
  lost: lost.MessageId,
  throttled: throttled.MessageId,
  failed: batch.Failed.map(({ Id, Code }) => [Id, Code]),
  waiting,
  removed,
}));
