// Package message finds a package's messages, with each field's value, the queue, and
// the sending calls.
//
// An [Index] holds the messages of one package. A [Message] is one value of a message
// type. A [Use] is one value that becomes a field of a message, here or in a function
// of another package. A [Letter] is a body with its attributes.
//
// Rules are outside of package message.
package message
