package sqscall_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
)

// clocked is an HTTP client and an SQS with a clock: it refuses requests that were not signed
// within five minutes of this clock, and confirms all others.
type clocked struct {
	lead   time.Duration // of SQS's clock over this machine's
	code   string        // of a refusal
	late   time.Duration // the answer arrives late by the time of this machine
	dead   error         // of the connection, after the time `late`
	signed time.Duration // lead of the last request's signature over SQS's clock
	key    string        // access key of the last request
}

func (s *clocked) Do(r *http.Request) (*http.Response, error) {
	now := time.Now().Add(s.lead)
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return nil, err
	}
	s.signed = at.Sub(now)
	credential, _, _ := strings.Cut(r.Header.Get("Authorization"), "/")
	_, s.key, _ = strings.Cut(credential, "=")
	out := response(200, []byte(success(entries(1)[0]).String()))
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "Batch") {
		out = response(200, []byte(batchSuccess(entries(3)).String()))
	}
	if s.signed.Abs() > 5*time.Minute {
		out = response(403, []byte(object{"__type": coral + s.code, "message": "Signature expired"}.String()))
	}
	out.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	if time.Sleep(s.late); s.dead != nil {
		return nil, s.dead
	}
	return out, nil
}

// leanCaller returns a Caller that can make requests without the SDK's middleware, and a function
// that sends n entries and returns the answer to the last of them. The timeout is long, because
// its clock stands still during a suspension.
func leanCaller(t *testing.T, s *clocked, change ...func(*sqs.Options)) (*sqscall.Caller, func(n int) attempt.Answer) {
	client := sdkClient("http://localhost", s, append(change, wire.Use)...)
	c := sqscall.New(client, queueURL)
	c.SetTimeout(24 * time.Hour)
	return c, func(n int) attempt.Answer {
		answers := make([]attempt.Answer, n)
		_, _ = c.Send(t.Context(), entries(n), answers)
		return answers[n-1]
	}
}

// One of the clocks is set. SQS refuses the next request, the SDK learns the time from this
// answer, and all later requests are stored. The test sets SQS's clock; for a signature, this is
// the same as to set this machine's clock back.
func TestStepOfAClock(t *testing.T) {
	for _, code := range []string{"InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture", "SignatureDoesNotMatch"} {
		for _, step := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
			for _, n := range []int{1, 3} {
				t.Run(code+step.String()+strconv.Itoa(n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &clocked{code: code}
						c, send := leanCaller(t, s)
						for i, lead := range []time.Duration{0, step, 0} {
							s.lead = lead
							a := send(n)
							require.Equal(t, i == 0, c.IsLean())
							if i > 0 {
								require.Equal(t, again, got(a))
								require.Equal(t, code, a.Code)
								a = send(n)
							}
							require.Equal(t, stored, got(a))
							require.True(t, c.IsLean())
							require.Equal(t, stored, got(send(n)))
							require.LessOrEqual(t, s.signed.Abs(), time.Second)
						}
					})
				})
			}
		}
	}
}

// After a suspension, the next request is made from an answered request that is older than
// maxAge, but is signed now and with new credentials.
func TestSuspensionBetweenRequests(t *testing.T) {
	for _, n := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s := &clocked{lead: time.Hour, code: "RequestExpired"}
			fetches := 0
			c, send := leanCaller(t, s, func(o *sqs.Options) {
				o.Credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					fetches++
					return aws.Credentials{AccessKeyID: "KEY" + strconv.Itoa(fetches), SecretAccessKey: "SECRET", CanExpire: true, Expires: time.Now().Add(15 * time.Minute)}, nil
				}))
			})
			require.Equal(t, again, got(send(n)), "SQS's clock is an hour ahead")
			for i, asleep := range []time.Duration{0, 0, 10 * time.Minute, 10 * time.Minute, 12 * time.Hour} {
				time.Sleep(asleep)
				c.NoteSuspension(asleep)
				time.Sleep(10 * time.Second) // awake
				require.Equal(t, i > 0, c.IsLean())
				require.Equal(t, stored, got(send(n)))
				assert.LessOrEqual(t, s.signed.Abs(), time.Second)
				assert.Equal(t, "KEY"+strconv.Itoa(max(1, i-1)), s.key)
			}
			require.Equal(t, 40*time.Second, time.Since(c.Learned()), "all are made from the first")
		})
	}
}

// The machine is suspended during a request. A late answer counts. Without an answer, the
// entries are in doubt. The next request is signed at SQS's time, unless SQS has refused this
// one: the SDK then takes the date of the late answer for the time.
func TestSuspensionDuringARequest(t *testing.T) {
	for _, n := range []int{1, 3} {
		for _, own := range []bool{false, true} {
			for _, during := range []struct {
				clocked
				want want
			}{
				{clocked{}, stored},
				{clocked{dead: errors.New("reset")}, doubt},
				{clocked{lead: time.Hour}, again},
			} {
				synctest.Test(t, func(t *testing.T) {
					s := &clocked{code: "RequestExpired"}
					c, send := leanCaller(t, s)
					if own {
						send(n)
					}
					require.Equal(t, own, c.IsLean())
					s.lead, s.dead, s.late = during.lead, during.dead, 8*time.Minute
					require.Equal(t, during.want, got(send(n)))
					require.Equal(t, during.want == stored, c.IsLean())
					c.NoteSuspension(s.late)
					if s.dead, s.late = nil, 0; during.want == again {
						require.Contains(t, []want{stored, again}, got(send(n)))
						require.Equal(t, stored, got(send(n)))
						return
					}
					require.Equal(t, stored, got(send(n)))
					require.LessOrEqual(t, s.signed.Abs(), time.Second)
				})
			}
		}
	}
}

// The machine is suspended while credentials are fetched. The request does not leave,
// because SendIf checks its condition afterwards.
func TestSuspensionBeforeTheNetwork(t *testing.T) {
	for _, own := range []bool{false, true} {
		suspends, suspended := false, false
		s := &clocked{}
		c, send := leanCaller(t, s, func(o *sqs.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				suspended = suspends
				return aws.Credentials{AccessKeyID: "KEY", SecretAccessKey: "SECRET"}, nil
			})
		})
		if own {
			send(1)
		}
		require.Equal(t, own, c.IsLean())
		suspends, s.key = true, ""
		answers := make([]attempt.Answer, 1)
		_, _, err := c.SendIf(t.Context(), entries(1), answers, func() bool { return !suspended })
		require.ErrorIs(t, err, sqscall.ErrNotAllowed)
		require.Equal(t, attempt.FateNotStored, answers[0].Fate)
		require.Empty(t, s.key, "nothing has left")
	}
}
