package owner

import (
	"example.com/shop/odd/owner/internal/secret"
	"github.com/kansas-frontier-matrix/sqsfifo"
)

func Config() sqsfifo.Config[secret.Order] { return sqsfifo.Config[secret.Order]{} }

type order struct{ ID string }

func Orders() sqsfifo.Config[order] { return sqsfifo.Config[order]{} }
