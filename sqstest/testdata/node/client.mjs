// Sends, receives and is deduplicated by the queue whose URL and endpoint are
// given, with the checksum validation of the SDK on, and prints what it saw.
import {
  DeleteMessageCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";

const [endpoint, QueueUrl] = process.argv.slice(2);
const client = new SQSClient({
  endpoint,
  region: "us-east-1",
  credentials: { accessKeyId: "any", secretAccessKey: "any" },
});

const send = (MessageBody, value) =>
  client.send(new SendMessageCommand({
    QueueUrl,
    MessageBody,
    MessageGroupId: "g",
    MessageAttributes: { tag: { DataType: "String", StringValue: value } },
  }));

const first = await send("é🙂", "one");
const again = await send("é🙂", "two");
const batch = await client.send(new SendMessageBatchCommand({
  QueueUrl,
  Entries: [
    { Id: "old", MessageBody: "é🙂", MessageGroupId: "g" },
    { Id: "new", MessageBody: "b", MessageGroupId: "g" },
  ],
}));

const received = await client.send(new ReceiveMessageCommand({
  QueueUrl,
  MaxNumberOfMessages: 10,
  MessageAttributeNames: ["All"],
  MessageSystemAttributeNames: ["All"],
}));
for (const { ReceiptHandle } of received.Messages) {
  await client.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }));
}

let refusal;
try {
  await client.send(new SendMessageCommand({ QueueUrl, MessageBody: "c" }));
} catch (e) {
  refusal = e.name;
}

const move = await fetch(new URL("/_sqsfifo/clock", endpoint), {
  method: "POST",
  body: JSON.stringify({ advance_seconds: 301 }),
});
const later = await send("é🙂", "three");

console.log(JSON.stringify({
  first: [first.MessageId, first.SequenceNumber],
  again: [again.MessageId, again.SequenceNumber],
  batch: batch.Successful.map((e) => [e.Id, e.MessageId]),
  received: received.Messages.map((m) => [m.MessageId, m.Body, m.MessageAttributes?.tag?.StringValue ?? ""]),
  refusal,
  moved: move.status,
  later: [later.MessageId, later.SequenceNumber],
}));
