package directives

//sqsfifo:ignore SF002
//sqsfifo:ignore SF999 -- not a rule
//sqsfifo:ignore SF007 -- nothing here is random
var Nothing int
