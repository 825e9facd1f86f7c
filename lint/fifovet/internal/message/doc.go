// Package message finds the SQS and SNS messages that a Go package sends, for the rules
// of the linter. It finds the value of each field, the queue, and the sending calls.
//
//   - An [Index] has all messages of one package.
//   - A [Message] is one value of a message type, such as sqs.SendMessageInput.
//   - A [Use] is one value in a message. It is the value of a field, or an argument of a
//     function that puts the argument into a message.
//   - A [Letter] is the body and the attributes of one message.
//
// The rules are in other packages.
package message
