"""A suite in the style of suites for LocalStack: boto3 and unittest, queues made and deleted for each test."""

import json
import os
import unittest
import urllib.request

import boto3

ENDPOINT = os.environ.get("LOCALSTACK_ENDPOINT", "http://localhost:4566")


class OrdersTest(unittest.TestCase):
    def setUp(self):
        self.sqs = boto3.client(
            "sqs", endpoint_url=ENDPOINT, region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
        )
        self.url = self.sqs.create_queue(
            QueueName="orders.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
        )["QueueUrl"]

    def tearDown(self):
        self.sqs.delete_queue(QueueUrl=self.url)

    def send(self, body):
        return self.sqs.send_message(QueueUrl=self.url, MessageBody=body, MessageGroupId="g")

    def test_health(self):
        with urllib.request.urlopen(ENDPOINT + "/_localstack/health") as answer:
            self.assertIn(json.load(answer)["services"]["sqs"], ("available", "running"))

    def test_duplicates_are_dropped(self):
        self.assertEqual(self.send("a")["MessageId"], self.send("a")["MessageId"])
        received = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10)["Messages"]
        self.assertEqual([m["Body"] for m in received], ["a"])

    def test_order(self):
        for body in "abc":
            self.send(body)
        received = self.sqs.receive_message(QueueUrl=self.url, MaxNumberOfMessages=10)["Messages"]
        self.assertEqual([m["Body"] for m in received], ["a", "b", "c"])

    def test_purge(self):
        for _ in range(2):
            self.send("a")
            self.sqs.purge_queue(QueueUrl=self.url)
            self.assertNotIn("Messages", self.sqs.receive_message(QueueUrl=self.url))

    def test_url_of_the_queue(self):
        self.assertEqual(self.url, self.sqs.get_queue_url(QueueName="orders.fifo")["QueueUrl"])
        self.assertTrue(self.url.endswith("/000000000000/orders.fifo"), self.url)

    def test_name_without_suffix(self):
        with self.assertRaises(self.sqs.exceptions.ClientError) as refused:
            self.sqs.create_queue(QueueName="orders", Attributes={"FifoQueue": "true"})
        self.assertIn("must end with .fifo", str(refused.exception))


if __name__ == "__main__":
    unittest.main()
