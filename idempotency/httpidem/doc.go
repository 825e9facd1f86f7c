// Package httpidem is net/http middleware for the Idempotency-Key request header
// (draft-ietf-httpapi-idempotency-key-header). A client that repeats a POST after a
// timeout receives the first answer, and the operation has no second effect.
//
// # Problem
//
// After a broken connection, a client does not know whether its payment was made. A
// repeated request may pay twice; without repetition, the payment may never happen. A
// cache of answers in front of the handler is insufficient: two requests can race past
// the cache, a crash between effect and cache entry makes the next request run again, and
// one tenant must not read another tenant's cached answer.
//
// # Guarantee
//
// For each key within a scope, the handler runs at most once until its outcome is known,
// however many requests race. The claim is durable before the handler begins, and the
// outcome is durable before the first byte of the answer is sent. Every repetition
// therefore gets the answer seen by the first client, until the record expires 24 hours
// (by default) after its creation. The handler's answer decides the fate of the key:
//
//	handler                              key afterwards            a repetition gets
//	any status but those below           succeeded                 the stored answer, Idempotency-Replayed: true
//	401, 403, 408, 409, 425, 429         failed, not stored        a new run
//	[MarkNoEffect], whatever the status  failed, not stored        a new run
//	500 and above, panic, time-out       in doubt                  409 [ProblemOutcomeUnknown]
//	the same, in a [Transaction]         rolled back               a new run
//
// After a server error, a new run may be wrong: the handler may have failed after its
// effect. A key in doubt is refused until an operator resolves it, unless the policy
// allows another run (idempotency.PolicyConfig, Window and Resend). A [Transaction]
// removes the doubt by committing claim, effect and outcome together. [InSQL] is a
// Transaction over a database of package sqlstore.
//
// The handler's context continues after the client has left. It ends before the lease,
// early enough for one store call (the policy's StoreTimeout). The lease counts from just
// before the claim. An answer after the end of the context counts as a time-out, even
// with status 200: a handler that returns because its context ended looks the same.
//
// A request may be refused before the handler runs. The answer is then an RFC 9457
// problem document with a [ProblemType]: the key is missing, malformed or repeated; the
// scope is empty; the body is too large; buffer memory is used up; the key belongs to
// another payload or is in progress; or the store does not answer. The quoted key "k" (a
// structured-field string) and the bare key k are the same key. Requests with safe
// methods pass through.
//
// # Use
//
// Place the middleware inside authentication, so that [Config].Scope sees the
// authenticated principal, and outside of handlers such as compression, which change
// answers per request:
//
//	authenticate(idempotent.Handler(mux))
//
// # Limits
//
//   - Answers are buffered completely. Streaming, server-sent events, hijacking,
//     WebSockets, HTTP/2 push, informational (1xx) answers and trailers are unsupported:
//     the handler's ResponseWriter implements neither http.Flusher nor http.Hijacker, and
//     http.ResponseController returns http.ErrNotSupported. Route such handlers around
//     the middleware.
//   - An answer larger than [Limits].ResponseBody is sent to the first client, but its
//     body is not retained: repetitions get its status and a [ProblemNotRetained] document. The
//     handler does not run again to recreate the body.
//   - Only listed headers are stored: see [Rules].Headers. The first answer has all
//     headers set by the handler; a replay has no Set-Cookie.
//   - The fingerprint covers method, host, path, query, Content-Type, Content-Encoding and
//     the bytes of the body. A repetition through another host name or path, with another
//     order of JSON members or with another multipart boundary is another payload. If the form was parsed before the middleware, its
//     values and files count in place of the bytes. If an outer handler read the body
//     without parsing a form, the request is refused with 500. The middleware cannot
//     detect this for a body of unknown length.
//   - Without a [Transaction], a crash between the effect and its record leaves the key in
//     doubt. The key is also in doubt if the store makes a claim but twice fails to
//     confirm it: the request is refused with 503, although its key is claimed.
//   - A handler may ignore its context and keep running; the client waits. A slow client
//     occupies buffer memory while sending its body: set http.Server.ReadTimeout.
package httpidem
