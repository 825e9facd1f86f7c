package httpidem

import (
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
	DefaultLease        = time.Minute // with a TTL of idempotency.TTLRequest, 24 hours
	DefaultRequestBody  = 1 << 20
	DefaultResponseBody = 64 << 10
	DefaultBuffered     = 64 << 20
)

// Config configures a [Middleware]. Scope and Authorize are required, and one of
// Store and Begin.
type Config struct {
	// Store keeps the keys. Use a durable one, for example of package sqlstore.
	Store idempotency.Store

	// Begin, instead of Store, opens a transaction for each request with a key, in
	// which claim, effect and outcome are committed together. The handler runs under
	// the context that it returns, which should carry the transaction to the handler.
	// The context it gets ends with the lease.
	Begin func(ctx context.Context) (context.Context, Transaction, error)

	// Policy says how long a handler may run (Lease, which includes the calls of the
	// store) and how long answers are kept (TTL). The zero Policy is a lease of
	// [DefaultLease] and a TTL of 24 hours.
	Policy idempotency.Policy

	// Operation is that of the keys. Two middlewares with different operations share no
	// keys. The default is [DefaultOperation].
	Operation string

	// Scope returns who may share keys with whom: the tenant or client, taken from the
	// authenticated principal and never from what the client sent. Use
	// idempotency.JoinScope for several parts. A request for which it returns "" is
	// refused: there is no global scope.
	Scope func(*http.Request) string

	// Authorize decides before each replay whether the request may read the stored
	// answer; an error refuses it with 403. Rights may have been revoked since the answer
	// was stored. It should make the checks that the handler makes. Return nil only
	// if every principal of a scope may always read the answers of the scope.
	Authorize func(*http.Request, idempotency.Record) error

	Rules  Rules
	Limits Limits

	// Observe, if set, is called once for each request with a key or without a
	// required one, after its answer, on the goroutine of the request.
	Observe func(*http.Request, Observation)
}

// Rules say which requests need a key and how some are answered. The zero value
// follows the IETF draft.
type Rules struct {
	// Required reports whether a request without a key is refused with 400 instead of
	// run without protection. It is not asked about safe methods. The default requires a
	// key of every method but PUT and DELETE, which are idempotent by themselves.
	Required func(*http.Request) bool

	// OtherPayload is the status for a key that was used for another request: 422, the
	// default, or 409.
	OtherPayload int

	// StatusURL, if set, answers a request whose key is in progress with 202 and the
	// returned URL as Location, instead of 409. Both have Retry-After. If it returns
	// "", the answer is 409.
	StatusURL func(*http.Request, idempotency.Key) string

	// Headers names response headers to store with the answer, in addition to those that
	// describe its content and place: Cache-Control, Content-Digest,
	// Content-Disposition, Content-Encoding, Content-Language, Content-Location,
	// Content-Type, ETag, Last-Modified, Link, Location, Repr-Digest, Retry-After and
	// Vary. Credentials (Set-Cookie, Authorization and the like) and headers
	// of the connection are refused.
	Headers []string
}

// Limits bound memory, in bytes. A zero field has its default.
type Limits struct {
	// RequestBody is the largest request body; larger ones are refused with 413.
	RequestBody int64

	// ResponseBody is the largest answer body that is stored, at most [MaxResponseBody].
	ResponseBody int64

	// Buffered is the memory for the request and response bodies of all requests
	// together, at least RequestBody + ResponseBody. Each request reserves its
	// body and ResponseBody before it is claimed, and is refused with 503 if that is not
	// available. A larger answer takes what is free; if that is not enough, its body is
	// dropped and the first client gets a [NotRetained] document, too.
	// The fixed overhead of a request, stored headers and the copies that a store
	// makes are not counted.
	Buffered int64
}

// MaxResponseBody is the largest [Limits].ResponseBody. The rest of
// idempotency.MaxResponse is for headers.
const MaxResponseBody = idempotency.MaxResponse - maxHead

// Middleware makes handlers idempotent. It is safe for concurrent use.
type Middleware struct {
	config  Config
	headers map[string]bool // canonical names
	memory  *budget
}

// New returns a middleware, or an [*idempotency.InvalidError] that names the field of c
// that breaks its rule.
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
		if *f.value == 0 {
			*f.value = f.initial
		}
	}
	if l.ResponseBody > MaxResponseBody {
		return nil, invalid("Limits.ResponseBody", "%d, want at most %d; larger answers are sent but not stored", l.ResponseBody, MaxResponseBody)
	}
	if l.RequestBody > l.Buffered-l.ResponseBody {
		return nil, invalid("Limits.Buffered", "%d is less than RequestBody + ResponseBody; the largest request would always be refused", l.Buffered)
	}
	return &Middleware{config: c, headers: headers, memory: newBudget(l.Buffered)}, nil
}

// storedHeaders describe the content and place of an answer. Without Content-Encoding
// and Content-Type a replayed body would mean something else.
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
