// Package message finds the messages sent by a package: the value of each field, the
// queue, and the sending calls.
//
// An [Index] holds the messages of one package. A [Message] is one value of a message
// type. A [Use] is one value that becomes a field of a message, directly or as a function
// argument, possibly in another package. A [Letter] is a message body with its
// attributes. The rules are in other packages.
package message
