package httpidem

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Defaults of [Config] and [Limits].
const (
	DefaultOperation    = "http.request"
	DefaultLease        = time.Minute // lease of the default Policy, which has a TTL of 24 hours (idempotency.TTLRequest)
	DefaultRequestBody  = 1 << 20
	DefaultResponseBody = 64 << 10
	DefaultBuffered     = 64 << 20
)

// Config configures a [Middleware]. Scope and Authorize are required, and exactly one of
// Store and Begin.
type Config struct {
	// Store keeps the keys. Use a durable store, for example of package sqlstore.
	Store idempotency.Store

	// Begin is an alternative to Store: it opens a database transaction for each request
	// with a key. The claim, the handler's effect and the outcome then commit together.
	//
	// The handler runs under the returned context, which should carry the transaction.
	// The context passed to Begin ends with the lease.
	Begin func(ctx context.Context) (context.Context, Transaction, error)

	// Policy has two durations: Lease limits the handler's run together with the store
	// calls, and TTL is the lifetime of stored answers. The zero Policy means a Lease of
	// [DefaultLease] and a TTL of 24 hours.
	Policy idempotency.Policy

	// Operation is part of every key. Middlewares with different operations share no
	// keys. The default is [DefaultOperation].
	Operation string

	// Scope returns the scope of the request's keys: the tenant or client of the
	// authenticated principal, never a value chosen by the client. Use
	// idempotency.JoinScope for several parts. Requests with the scope "" are refused:
	// there is no global scope.
	Scope func(*http.Request) string

	// Authorize decides, before each replay, whether the request may read the stored
	// answer. An error refuses the request with 403.
	//
	// Rights may have been revoked since the answer was stored, so Authorize should repeat
	// the handler's checks. An Authorize that always returns nil is safe only if every
	// principal of a scope may always read all answers of the scope.
	Authorize func(*http.Request, idempotency.Record) error

	Rules  Rules
	Limits Limits

	// Observe, unless nil, is called once per request, after the answer, on the request's
	// goroutine. It is not called for safe methods, nor for requests without a key if the
	// key is optional.
	Observe func(*http.Request, Observation)
}

// Rules select the requests that need a key, the statuses of some refusals, and the stored
// headers. The zero value follows the IETF draft.
type Rules struct {
	// Required reports whether a request without a key is refused with 400, or runs
	// without protection against repetition. Required is not called for safe methods,
	// which never need a key.
	//
	// If Required is nil, PUT and DELETE need no key, because they are already idempotent.
	// All other unsafe methods need a key.
	Required func(*http.Request) bool

	// OtherPayload is the status of the answer if the key was used before for another
	// request: 422, the default, or 409.
	OtherPayload int

	// StatusURL, unless nil, changes the answer to a request while an earlier request
	// with the same key still runs. The answer is then 202 with the returned URL as
	// Location, instead of 409.
	//
	// If StatusURL returns "", the answer is 409. Both answers have Retry-After.
	StatusURL func(*http.Request, idempotency.Key) string

	// Headers names further response headers to store with the answer. New refuses
	// credentials (Set-Cookie, Authorization and similar headers) and connection headers.
	//
	// These headers are always stored: Cache-Control, Content-Digest,
	// Content-Disposition, Content-Encoding, Content-Language, Content-Location,
	// Content-Type, ETag, Last-Modified, Link, Location, Repr-Digest, Retry-After and
	// Vary.
	Headers []string
}

// Limits bound memory, in bytes. Zero fields have defaults.
type Limits struct {
	// RequestBody is the size limit of request bodies; larger requests are refused with
	// 413.
	RequestBody int64

	// ResponseBody is the size limit of stored answer bodies, at most [MaxResponseBody].
	ResponseBody int64

	// Buffered limits the memory for the bodies of all concurrent requests and answers. It
	// is at least RequestBody + ResponseBody. The fixed overhead of a request, stored
	// headers, and copies made by a store are not counted.
	//
	// A request reserves memory before its claim: the length of its body plus
	// ResponseBody. If too little memory is free, the request is refused with 503.
	//
	// An answer larger than ResponseBody needs further memory. If too little is free, the
	// body of the answer is dropped: all clients get a [ProblemNotRetained] document instead, even
	// the client whose request ran the handler.
	Buffered int64
}

// MaxResponseBody is the upper bound of [Limits].ResponseBody. A store accepts
// idempotency.MaxResponse bytes for headers and body together.
const MaxResponseBody = idempotency.MaxResponse - maxHead

// Middleware makes handlers idempotent. It is safe for concurrent use.
type Middleware struct {
	config  Config
	headers map[string]bool // canonical names
	memory  *budget
}

// New returns a middleware, or an [*idempotency.InvalidError] with the name of an invalid
// field of c.
func New(c Config) (*Middleware, error) {
	invalid := func(field, format string, args ...any) error {
		return &idempotency.InvalidError{Field: "httpidem.Config." + field, Rule: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Store == nil && c.Begin == nil:
		return nil, invalid("Store", "nil; use a store, for example one of package sqlstore, or Begin")
	case c.Store != nil && c.Begin != nil:
		return nil, invalid("Begin", "set together with Store; use one of them")
	case c.Scope == nil:
		return nil, invalid("Scope", "nil; return the authenticated tenant or client, or keys of different tenants would collide")
	case c.Authorize == nil:
		return nil, invalid("Authorize", "nil; check that the request may read a stored answer, or return nil if each principal of a scope always may")
	}
	if c.Policy == (idempotency.Policy{}) {
		p, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.TTLRequest, Lease: DefaultLease})
		if err != nil {
			return nil, err
		}
		c.Policy = p
	}
	if p := c.Policy.Config(); p.StoreTimeout >= p.Lease {
		return nil, invalid("Policy", "a StoreTimeout of %v leaves nothing of the Lease of %v; the handler gets the difference", p.StoreTimeout, p.Lease)
	}
	if c.Operation == "" {
		c.Operation = DefaultOperation
	}
	if err := (idempotency.Key{Scope: "-", Operation: c.Operation, Value: "-"}).Check(); err != nil {
		return nil, fmt.Errorf("httpidem.Config.Operation: %w", err)
	}
	if c.Rules.Required == nil {
		c.Rules.Required = func(r *http.Request) bool { return r.Method != http.MethodPut && r.Method != http.MethodDelete }
	}
	switch c.Rules.OtherPayload {
	case 0:
		c.Rules.OtherPayload = http.StatusUnprocessableEntity
	case http.StatusUnprocessableEntity, http.StatusConflict:
	default:
		return nil, invalid("Rules.OtherPayload", "%d, want 422 or 409", c.Rules.OtherPayload)
	}
	headers := map[string]bool{}
	for _, name := range storedHeaders {
		headers[name] = true
	}
	for i, name := range c.Rules.Headers {
		field, canonical := fmt.Sprintf("Rules.Headers[%d]", i), http.CanonicalHeaderKey(name)
		if neverStored[canonical] {
			return nil, invalid(field, "%s is never stored: it carries credentials or belongs to one connection; remove it", canonical)
		}
		if at := strings.IndexFunc(name, func(c rune) bool { return !isTokenChar(c) }); name == "" || at >= 0 {
			return nil, invalid(field, "%q is not a header name; use letters, digits and hyphens", name)
		}
		headers[canonical] = true
	}
	l := &c.Limits
	for _, f := range []struct {
		name    string
		value   *int64
		initial int64
	}{{"RequestBody", &l.RequestBody, DefaultRequestBody}, {"ResponseBody", &l.ResponseBody, DefaultResponseBody}, {"Buffered", &l.Buffered, DefaultBuffered}} {
		if *f.value < 0 {
			return nil, invalid("Limits."+f.name, "%d, want more than 0, or 0 for the default", *f.value)
		}
		*f.value = cmp.Or(*f.value, f.initial)
	}
	if l.ResponseBody > MaxResponseBody {
		return nil, invalid("Limits.ResponseBody", "%d, want at most %d; larger answers are sent but not stored", l.ResponseBody, MaxResponseBody)
	}
	if l.RequestBody > l.Buffered-l.ResponseBody {
		return nil, invalid("Limits.Buffered", "%d is less than RequestBody + ResponseBody; the largest request would always be refused", l.Buffered)
	}
	return &Middleware{config: c, headers: headers, memory: newBudget(l.Buffered)}, nil
}

// storedHeaders are the headers that are always stored with an answer. Without
// Content-Encoding and Content-Type, a replayed body would have another meaning.
var storedHeaders = [...]string{
	"Cache-Control", "Content-Digest", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location", "Content-Type",
	"Etag", "Last-Modified", "Link", "Location", "Repr-Digest", "Retry-After", "Vary",
}

var neverStored = map[string]bool{
	"Set-Cookie": true, "Set-Cookie2": true, "Cookie": true, "Authorization": true, "Www-Authenticate": true, "Authentication-Info": true,
	"Proxy-Authorization": true, "Proxy-Authenticate": true, "Proxy-Authentication-Info": true,
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Content-Length": true, "Date": true, replayedHeader: true,
}

func isTokenChar(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c)
}
