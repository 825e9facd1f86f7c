package sqstest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The in-process API imitates the errors of the SDK. For random inputs, this test compares
// them with the errors of a real client.
func TestInProcessErrorsAreTheClients(t *testing.T) {
	account := reflect.TypeFor[account]()
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	for i := range account.NumMethod() {
		operation := account.Method(i).Name
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fresh := func() *sqstest.Server {
					return sqstest.NewServer(newQueue(t, sqstest.Config{}), newQueue(t, sqstest.Config{Standard: true}))
				}
				server, client := fresh(), fresh().Client(func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
				rng := rand.New(rand.NewPCG(uint64(i), 12))
				refused := 0
				for range rounds {
					method := reflect.ValueOf(server).MethodByName(operation)
					input := reflect.New(method.Type().In(1).Elem())
					fillRandomly(rng, input.Elem(), "")
					got := callWith(method, input)
					want := callWith(reflect.ValueOf(client).MethodByName(operation), input)
					if want != nil {
						refused++
					}
					require.Equal(t, describeError(want), describeError(got), "%+v", input.Elem().Interface())
				}
				if operation != "ListQueues" {
					require.Greater(t, refused, rounds/4, "inputs that are refused are what this is about")
				}
			})
		})
	}
}

func callWith(method, input reflect.Value) error {
	err, _ := method.Call([]reflect.Value{reflect.ValueOf(context.Background()), input})[1].Interface().(error)
	return err
}

// fillRandomly sets about three in five of the exported fields of a struct, some to
// invalid values.
func fillRandomly(rng *rand.Rand, v reflect.Value, name string) {
	text := func() string {
		choices := []string{"", "a", "a b", "events", "events.fifo", "none.fifo", "arn:aws:sqs:us-east-1:000000000000:events.fifo", strings.Repeat("x", 129), "String", "1"}
		if name == "QueueUrl" {
			choices = []string{"events.fifo", "events.fifo", "events", "none"}
		}
		return choices[rng.IntN(len(choices))]
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || field.Type == reflect.TypeFor[middleware.Metadata]() || rng.IntN(5) < 2 {
				continue
			}
			fillRandomly(rng, v.Field(i), field.Name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillRandomly(rng, v.Elem(), name)
	case reflect.String:
		v.SetString(text())
	case reflect.Int32:
		v.SetInt(int64([]int{0, 0, 1, -1, 11, 1001}[rng.IntN(6)]))
	case reflect.Slice:
		n := rng.IntN(3)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fillRandomly(rng, v.Index(i), name)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		// At most one entry: the SDK reports the missing members of several entries in a
		// random order.
		if rng.IntN(3) > 0 {
			value := reflect.New(v.Type().Elem()).Elem()
			fillRandomly(rng, value, name)
			key := reflect.New(v.Type().Key()).Elem()
			key.SetString([]string{"a", "FifoQueue", "RedrivePolicy", "AWSTraceHeader", "VisibilityTimeout"}[rng.IntN(5)])
			v.SetMapIndex(key, value)
		}
	}
}

var requestID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// describeError returns every part of an error that a program can see.
func describeError(err error) string {
	var b strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&b, "%T: %s\n", e, requestID.ReplaceAllString(e.Error(), "ID"))
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		fmt.Fprintf(&b, "code %s, message %s, fault %v\n", api.ErrorCode(), api.ErrorMessage(), api.ErrorFault())
	}
	var response interface{ HTTPStatusCode() int }
	if errors.As(err, &response) {
		fmt.Fprintf(&b, "status %d\n", response.HTTPStatusCode())
	}
	return b.String()
}
