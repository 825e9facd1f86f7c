package secret

type Order struct{ ID string }
