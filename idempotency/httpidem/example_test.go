package httpidem_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
)

// A client pays, loses the answer and repeats the request. The payment is made once.
func Example() {
	payments := 0
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		amount, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "unreadable", http.StatusBadRequest)
			return
		}
		payments++
		w.Header().Set("Location", fmt.Sprintf("/payments/%d", payments))
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, "paid %s", amount)
	})

	// In a server, use a durable store (package sqlstore) and your authentication.
	idempotent, err := httpidem.New(httpidem.Config{
		Store:     new(idempotency.Memory),
		Operation: "payments.create",
		Scope:     func(r *http.Request) string { return principal(r) },
		Authorize: func(r *http.Request, _ idempotency.Record) error { return nil }, // a tenant may read all its answers
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /payments", idempotent.Handler(pay))
	server := httptest.NewServer(mux)
	defer server.Close()

	send := func(key, amount string) {
		r, err := http.NewRequest(http.MethodPost, server.URL+"/payments", strings.NewReader(amount))
		if err != nil {
			fmt.Println(err)
			return
		}
		r.Header.Set("Authorization", "Bearer token-of-tenant-7")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			fmt.Println(err)
			return
		}
		if resp.StatusCode >= 400 {
			body = nil // do not print the problem document
		}
		fmt.Printf("%d replayed=%q %q %q\n", resp.StatusCode, resp.Header.Get("Idempotency-Replayed"), resp.Header.Get("Location"), body)
	}
	send(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "10 EUR")
	send(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "10 EUR") // the repetition
	send(`"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "99 EUR") // another payment with the same key by mistake
	send("", "10 EUR")
	fmt.Println("payments:", payments)
	// Output:
	// 201 replayed="" "/payments/1" "paid 10 EUR"
	// 201 replayed="true" "/payments/1" "paid 10 EUR"
	// 422 replayed="" "" ""
	// 400 replayed="" "" ""
	// payments: 1
}

// principal returns the tenant of a request. A server would take the tenant from the
// request's context, after authentication.
func principal(r *http.Request) string {
	if r.Header.Get("Authorization") == "Bearer token-of-tenant-7" {
		return "tenant-7"
	}
	return ""
}

// A handler fails before it has any effect and calls MarkNoEffect, so its client may repeat
// the request. Without MarkNoEffect, the repetition would be refused.
func ExampleMarkNoEffect() {
	bankIsUp := false
	pay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !bankIsUp {
			httpidem.MarkNoEffect(r.Context())
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	idempotent, err := httpidem.New(httpidem.Config{
		Store:     new(idempotency.Memory),
		Scope:     func(*http.Request) string { return "tenant-7" },
		Authorize: func(*http.Request, idempotency.Record) error { return nil },
		Observe: func(_ *http.Request, o httpidem.Observation) {
			fmt.Println(o.Decision, o.Status, o.Ended)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := idempotent.Handler(pay)
	send := func() {
		r := httptest.NewRequest(http.MethodPost, "/payments", strings.NewReader("10 EUR"))
		r.Header.Set("Idempotency-Key", "order-1")
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	send()
	bankIsUp = true
	send()
	send()
	// Output:
	// new 503 failed
	// new 201 succeeded
	// duplicate 201 absent
}
