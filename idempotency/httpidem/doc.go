// Package httpidem is net/http middleware for the Idempotency-Key request header
// (draft-ietf-httpapi-idempotency-key-header): a client that repeats a POST after a
// timeout gets the answer of the first one instead of a second effect.
//
// # Problem
//
// A client whose connection broke cannot know whether its payment was made. If it
// repeats the request, it may pay twice; if it does not, it may never pay. A cache of
// answers in front of the handler is not enough: two requests race past it, a crash
// between the effect and the cache entry makes the next request run again, and an
// answer that was cached for one tenant must not be read by another.
//
// # Guarantee
//
// For each key within a scope, the handler runs at most once until its outcome is
// known, however many requests race. The claim is durable before the handler begins,
// and the outcome is durable before the first byte of the answer is sent. So an answer
// that a client has seen is the answer that every repetition gets, until the record
// expires 24 hours (by default) after its creation. What the middleware does with an
// outcome depends on what it proves:
//
//	handler                              key afterwards            a repetition gets
//	any status but those below           succeeded                 the stored answer, Idempotency-Replayed: true
//	401, 403, 408, 409, 425, 429         failed, not stored        a new run
//	[NotDone], whatever the status       failed, not stored        a new run
//	500 and above, panic, time-out       in doubt                  409 [OutcomeUnknown]
//	the same, in a [Transaction]         rolled back               a new run
//
// A server error is not a licence to run again: the handler may have failed after its
// effect. A key in doubt is held until an operator settles it, unless the policy says
// that running again is safe (idempotency.PolicyConfig, Window and RunAgain). A
// [Transaction] removes the doubt: claim, effect and outcome are committed together.
// [InSQL] is that over a database of package sqlstore.
//
// The handler runs under a context that does not end when the client leaves. It ends
// when [Config.Policy]'s lease, less one store call, has passed since the claim. An
// answer that comes later counts as a time-out, even if its status is 200: a handler
// that returns because its context ended looks the same.
//
// A request is refused before the handler runs, with an RFC 9457 problem document
// whose type is a [ProblemType], if its key is missing, malformed or repeated, if it
// has no scope, if its body is too large or memory is short, if the key was used for
// another payload or is in progress, or if the store does not answer. The quoted key
// "k" (a structured-field string) and the bare key k are one key. Requests with safe
// methods pass through.
//
// # Use
//
// Put the middleware inside authentication, so that [Config].Scope can take the scope
// from the authenticated principal, and outside of whatever changes answers per
// request, such as compression:
//
//	authenticate(idempotent.Handler(mux))
//
// # Limits
//
//   - Answers are buffered as a whole. Streaming, server-sent events, hijacking,
//     WebSockets, HTTP/2 push, informational (1xx) answers and trailers are not
//     supported: the handler's ResponseWriter implements neither http.Flusher nor
//     http.Hijacker, and http.ResponseController returns http.ErrNotSupported.
//     Route such handlers around the middleware.
//   - An answer larger than [Limits].ResponseBody is sent to the first client, but its
//     body is not retained: repetitions get its status and a [NotRetained] document.
//     The handler does not run again to make the body again.
//   - Only listed headers are stored: see [Rules].Headers. The first answer has all
//     headers that the handler set; a replay does not have Set-Cookie.
//   - The fingerprint covers bytes. A client that encodes its JSON in another order, or
//     chooses another multipart boundary, sends another payload.
//   - Without a [Transaction], a crash between the effect and its record leaves the
//     key in doubt. So does a store that makes a claim and does not confirm it twice:
//     the request is refused with 503, although its key is then claimed.
//   - The handler keeps running if it ignores its context; its client waits. A slow
//     client occupies buffer memory while it sends its body: set
//     http.Server.ReadTimeout.
package httpidem
