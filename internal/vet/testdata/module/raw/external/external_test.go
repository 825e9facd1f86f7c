package external_test

import "example.com/shop/raw/external"

//sqsfifo:ignore SF009 -- nothing here is reported
var nothing = external.Send
