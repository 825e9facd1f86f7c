// Package message finds the messages that a package sends: the value of each field, the
// queue, and the calls that send.
//
// An [Index] holds the messages of one package. A [Message] is one value of a message
// type. A [Use] is one value that becomes a field of a message, directly or as the
// argument of a function, possibly of another package. A [Letter] is a message body
// together with its attributes. The rules are in other packages.
package message
