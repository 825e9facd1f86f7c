package files

type Order struct{ ID string }

//sqsfifo:ignore SF020 -- the line of another file // want unused-ignore: SF020 does not report here
