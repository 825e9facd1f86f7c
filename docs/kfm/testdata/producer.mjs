// The producer of the tests: reference/typescript over a client of Node's own fetch.
import { createInterface } from "node:readline";

export const kfm = await import(process.env.KFM_REFERENCE + "/kfm_message.js");

export const client = {
  async sendMessage(request) {
    const answer = await fetch(process.env.AWS_ENDPOINT_URL_SQS + "/", {
      method: "POST",
      headers: { "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage" },
      body: JSON.stringify(request),
    });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const event = JSON.parse(line);
  try {
    const body = kfm.envelope({ ...event, key: kfm.joinKey(...event.key) });
    await kfm.send(client, process.env.SQSFIFO_QUEUE_URL, kfm.message(body, event.group, event.attributes));
    console.log("sent");
  } catch (error) {
    console.log("error: " + String(error).replaceAll("\n", " "));
  }
}
