package wrapped

//sqsfifo:ignore SF002 -- nothing here is reported
var nothing = Send
