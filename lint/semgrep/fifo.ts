// Snippets for the rules of fifo.yaml: "ruleid" stands above a line with a finding, "ok"
// above a line without one.
import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { createHash, randomUUID } from "node:crypto";

type Scene = { id: string; tile: string; platform: string; acquired: string; eventID: string };

export const attributeOnly = (url: string, scene: Scene) =>
  // ruleid: sf001-attr-only-identity-typescript
  new SendMessageCommand({
    QueueUrl: url,
    MessageGroupId: scene.tile,
    MessageBody: JSON.stringify({ tile: scene.tile }),
    MessageAttributes: { unique_key: { DataType: "String", StringValue: scene.id } },
  });

export const attributeCopy = (url: string, scene: Scene) =>
  // ok: sf001-attr-only-identity-typescript
  new SendMessageCommand({
    QueueUrl: url,
    MessageGroupId: scene.tile,
    MessageBody: JSON.stringify({ dedupe_key: scene.id }),
    MessageAttributes: { unique_key: { DataType: "String", StringValue: scene.id } },
  });

export const routingHint = (url: string, scene: Scene) =>
  // ok: sf001-attr-only-identity-typescript
  new SendMessageCommand({
    QueueUrl: url,
    MessageGroupId: scene.tile,
    MessageBody: JSON.stringify({ tile: scene.tile }),
    MessageAttributes: { platform: { DataType: "String", StringValue: scene.platform } },
  });

export async function randomID(sqs: SQSClient, url: string, body: string) {
  // ruleid: sf002-nondeterministic-dedup-id-typescript
  await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageGroupId: "g", MessageBody: body, MessageDeduplicationId: randomUUID() }));
}

export async function clockID(sqs: SQSClient, url: string, body: string) {
  const minted = `scene-${Date.now()}`;
  // ruleid: sf002-nondeterministic-dedup-id-typescript
  await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageGroupId: "g", MessageBody: body, MessageDeduplicationId: minted }));
}

export async function hashID(sqs: SQSClient, url: string, body: string) {
  const id = createHash("sha256").update(body).digest("hex");
  // ok: sf002-nondeterministic-dedup-id-typescript
  await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageGroupId: "g", MessageBody: body, MessageDeduplicationId: id }));
}

export async function clockInBody(sqs: SQSClient, url: string, scene: Scene) {
  // ruleid: sf012-volatile-body-typescript
  await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageGroupId: "g", MessageBody: JSON.stringify({ id: scene.id, sent: new Date() }) }));
}

export async function eventTimeInBody(sqs: SQSClient, url: string, scene: Scene) {
  // ok: sf012-volatile-body-typescript
  await sqs.send(new SendMessageCommand({ QueueUrl: url, MessageGroupId: "g", MessageBody: JSON.stringify({ id: scene.id, acquired: scene.acquired }) }));
}

export const randomEventID = (scene: Scene) =>
  // ruleid: random-event-id-typescript
  ({ event_id: randomUUID(), payload: scene });

export const storedEventID = (scene: Scene) =>
  // ok: random-event-id-typescript
  ({ event_id: scene.eventID, request_id: randomUUID() });
