package consumer

import (
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// callTimeout limits a call of SQS. A receive also gets the time of its long poll.
const callTimeout = 10 * time.Second

// withoutRetries turns the SDK's retries off.
func withoutRetries(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }

var errNoOutput = errors.New("consumer: the client returned neither an answer nor an error")

// codeOf returns SQS's error code and true, or false if the error is not an answer of
// SQS, for example an error of the network.
func codeOf(err error) (code string, answered bool) {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return "", false
	}
	return strings.TrimPrefix(api.ErrorCode(), "AWS.SimpleQueueService."), true
}

// isDenied reports whether an error code of SQS is a permanent refusal: the permission,
// the encryption key or the queue is wrong.
func isDenied(code string) bool {
	switch code {
	case "AccessDenied", "AccessDeniedException", "NotAuthorized", "UnauthorizedOperation", "InvalidSecurity",
		"KmsAccessDenied", "KMS.AccessDeniedException", "KmsDisabled", "KMS.DisabledException", "KmsNotFound", "KMS.NotFoundException",
		"QueueDoesNotExist", "NonExistentQueue", "InvalidAddress", "UnsupportedOperation":
		return true
	}
	return false
}

// isExpired reports whether SQS refused a batch entry because its receipt handle is no
// longer valid. The message was deleted, is visible again, or was received by another
// consumer (F-098).
func isExpired(code string, senderFault bool) bool {
	code = strings.TrimPrefix(code, "AWS.SimpleQueueService.")
	return senderFault && (strings.HasPrefix(code, "InvalidParameterValue") || code == "ReceiptHandleIsInvalid" || code == "MessageNotInflight")
}

// backoff returns a random wait before the next attempt. After the first try, the wait is at
// most `base`. This limit doubles with each further try, but never exceeds the parameter
// `most`.
func backoff(base, most time.Duration, try int) time.Duration {
	d := most
	if shift := try - 1; shift < 30 && base<<shift>>shift == base && base<<shift < most {
		d = base << shift
	}
	return time.Duration(rand.Int64N(int64(d))) + 1 // #nosec G404 -- jitter
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
