package redisstore

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

var (
	//go:embed head.lua
	headSource string

	//go:embed claim.lua
	claimSource string

	//go:embed finish.lua
	finishSource string

	//go:embed read.lua
	readSource string
)

// serverClock defines the scripts' clock.
const serverClock = `local function clock()
  local t = redis.call('TIME')
  return string.format('%012d%06d', t[1], t[2])
end
`

// script is a program executed atomically by the server.
type script struct{ text, sha string }

type scripts struct{ claim, finish, read script }

// newScripts returns the scripts. The Lua source in clockSource defines the function
// `clock`, which returns the server's time; tests use another clock.
func newScripts(clockSource string) scripts {
	build := func(flags, source string) script {
		var b strings.Builder
		b.WriteString(flags)
		b.WriteString(clockSource)
		fmt.Fprintf(&b, "local distant, tolerance, set_back = '%s', %d, '%s'\nlocal fields = {'%s'}\n", timeText(distantFuture), int(clock.StepTolerance.Seconds()), clock.SetBack, strings.Join(fields, "', '"))
		b.WriteString(headSource)
		b.WriteString(source)
		sum := sha1.Sum([]byte(b.String())) // EVALSHA's name for the script
		return script{text: b.String(), sha: hex.EncodeToString(sum[:])}
	}
	return scripts{
		// Without a line "#!lua", Redis checks its memory limit only when the script
		// writes. A full server can then still answer duplicates.
		claim: build("", claimSource),
		// Results are recorded even when the server takes no new keys.
		finish: build("#!lua flags=allow-oom\n", finishSource),
		read:   build("#!lua flags=no-writes\n", readSource),
	}
}

type call struct {
	keys []string
	args []any
}

// run runs the script p once for each element of calls, and returns the answers in this
// order. The calls have different keys. run needs one round trip to each server, and a
// second one for servers without the script.
func (s *Store) run(ctx context.Context, p script, calls []call) ([]answer, error) {
	cmds := make([]*redis.Cmd, len(calls))
	pipe := s.client.Pipeline()
	for i, c := range calls {
		cmds[i] = pipe.EvalSha(ctx, p.sha, c.keys, c.args...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	again := s.client.Pipeline()
	for i, c := range calls {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") { // the server has restarted or is new
			cmds[i] = again.Eval(ctx, p.text, c.keys, c.args...)
		}
	}
	if again.Len() > 0 {
		_, _ = again.Exec(ctx)
	}
	answers := make([]answer, len(calls))
	for i, cmd := range cmds {
		values, err := cmd.Slice()
		if err != nil {
			return nil, err
		}
		if answers[i], err = parseAnswer(values); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// answer is the parsed answer of a script.
type answer struct {
	word   string
	record idempotency.Record // with ReadAt

	// stepped is the largest earlier time if the script detected that the server's clock
	// was set back, otherwise zero.
	stepped time.Time
}

// claimCall returns the script call for a claim. It copies the bytes of the claim,
// because the call may go on after Claim has returned and the caller has changed the
// claim.
func (s *Store) claimCall(c idempotency.Claim) call {
	n := s.nameOf(c.Key)
	resend := ""
	if c.Terms.ResendFor > 0 {
		resend = durationText(c.Terms.ResendFor)
	}
	return call{
		keys: []string{n.record, n.fence, n.clock},
		args: []any{
			s.clocks.seen(n.bucket), string(c.Token[:]), c.Fingerprint.Spec, string(c.Fingerprint.Sum[:]),
			durationText(c.Terms.Lease), durationText(c.Terms.TTL), resend, flag(c.Resend),
			"scope", c.Key.Scope, "operation_type", c.Key.Operation, "key", c.Key.Value,
			"fingerprint_spec", c.Fingerprint.Spec, "request_hash", string(c.Fingerprint.Sum[:]), "body_hash", nonZero(c.ExactHash[:]),
			"message_group", c.Group, "body", string(c.Body),
			"dataset_id", c.Dataset.ID, "version", c.Dataset.Version, "source_uri", c.Dataset.SourceURI,
			"artifact_checksum", c.Dataset.ArtifactChecksum, "care_label", c.Dataset.CARELabel, "replay_safe", flag(c.Dataset.ReplaySafe),
		},
	}
}

// endingCall returns the script call for the end or the extension of a claim.
func (s *Store) endingCall(ref idempotency.Ref, t idempotency.Ending) call {
	n := s.nameOf(ref.Key)
	c := call{keys: []string{n.record}, args: []any{n.sequence(ref.Fence)}}
	if r, ok := t.Result(); ok {
		c.args = append(c.args, "completed", string(r.Response), r.MessageID, r.SequenceNumber)
	} else if f, ok := t.Failure(); ok {
		proof := map[idempotency.Proof]string{idempotency.ProofNone: "none", idempotency.ProofForClaim: "claim", idempotency.ProofForAll: "all"}
		c.args = append(c.args, "failed", proof[f.Proof], f.Reason)
	} else if lease, ok := t.Lease(); ok {
		c.args = append(c.args, "extended", durationText(lease))
	} else {
		c.args = append(c.args, "released")
	}
	return c
}

// distantFuture is the time that package idempotency stores for the duration Forever.
var distantFuture = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// timeText returns t in the scripts' format.
func timeText(t time.Time) string { return microsText(t.UnixMicro()) }

// durationText returns d in the scripts' format. d is not negative.
func durationText(d time.Duration) string {
	if d == idempotency.Forever {
		return "forever"
	}
	return microsText(d.Microseconds())
}

func microsText(us int64) string { return fmt.Sprintf("%018d", us) }
