package redisstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
)

// A client sends a payment twice; the payment is made once.
func Example() {
	ctx := context.Background()
	// The server runs with appendonly yes, appendfsync always and noeviction.
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: shared.socket()})
	defer client.Close()
	store, err := redisstore.Open(ctx, redisstore.Config{Client: client, Prefix: "example:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	pay := func(key, order string) {
		claim := idempotency.Claim{
			Key: idempotency.Key{Scope: "tenant-7", Operation: "payments.create", Value: key}, Token: idempotency.NewToken(),
			Fingerprint: idempotency.FingerprintOf("payments/1", []byte(order)),
			Terms:       idempotency.Terms{Lease: time.Minute, TTL: idempotency.TTLPayment},
		}
		out, err := store.Claim(ctx, claim)
		if err == nil {
			err = out.Err(claim.Key)
		}
		if err != nil {
			fmt.Println("not paid:", out.Decision)
			return
		}
		if out.Decision == idempotency.DecisionDuplicate {
			fmt.Printf("%s: %s\n", out.Decision, out.Record.Result.Response)
			return
		}
		receipt := "paid " + order // the side effect
		if err := store.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte(receipt)})); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", out.Decision, receipt)
	}
	pay("k1", "10 EUR")
	pay("k1", "10 EUR")
	pay("k1", "99 EUR")
	// Output:
	// new: paid 10 EUR
	// duplicate: paid 10 EUR
	// not paid: conflict
}
