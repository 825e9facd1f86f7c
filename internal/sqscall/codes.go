package sqscall

import (
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// class is the meaning of an error code in the answer to a request that failed as a whole.
type class uint8

const (
	// unknown: the code proves nothing. A code that is not in the table has this class.
	unknown class = iota

	// throttle: SQS refused the request because of the rate of requests, before it executed
	// anything.
	throttle

	// final: SQS refused the request, and would refuse it again.
	final

	// access: SQS refused the request because of the queue, the permissions or the KMS
	// key. An operator must repair the cause.
	access

	// apart: SQS refused the whole batch because of one entry, or the entries' number
	// (F-054) or size (F-057). Smaller requests may succeed.
	apart

	// skew: SQS refused the signature, because this machine's clock is wrong or the
	// credentials have expired. The SDK can correct both for the next request.
	skew

	// service: a failure inside SQS. SQS may have stored the messages before it failed.
	service
)

// classify returns the class of an error code, for example "QueueDoesNotExist" or, in the
// older query protocol, "AWS.SimpleQueueService.NonExistentQueue".
func classify(code string) class {
	return classes[withoutNamespace(code)]
}

func withoutNamespace(code string) string { return strings.TrimPrefix(code, "AWS.SimpleQueueService.") }

// classes has the error codes of SQS, of AWS's server framework Coral (F-131), and of every
// AWS service. The codes of SQS are from the SDK v1.52.9: types/errors.go and the names in
// the query protocol.
var classes = map[string]class{
	// Codes about the rate of requests.
	"OverLimit":                              throttle,
	"RequestThrottled":                       throttle,
	"KmsThrottled":                           throttle,
	"KMS.ThrottlingException":                throttle,
	"Throttling":                             throttle,
	"ThrottlingException":                    throttle,
	"ThrottledException":                     throttle,
	"RequestThrottledException":              throttle,
	"TooManyRequestsException":               throttle,
	"ProvisionedThroughputExceededException": throttle,
	"TransactionInProgressException":         throttle,
	"RequestLimitExceeded":                   throttle,
	"BandwidthLimitExceeded":                 throttle,
	"LimitExceededException":                 throttle,
	"SlowDown":                               throttle,
	"PriorRequestNotComplete":                throttle,
	"EC2ThrottledException":                  throttle,

	// Codes about the content of one entry, or about the whole batch, for example its size.
	"BatchEntryIdsNotDistinct":          apart,
	"BatchRequestTooLong":               apart,
	"EmptyBatchRequest":                 apart,
	"InvalidBatchEntryId":               apart,
	"InvalidMessageContents":            apart,
	"InvalidParameterValue":             apart,
	"InvalidParameterValueException":    apart,
	"InvalidParameterCombination":       apart,
	"MissingParameter":                  apart,
	"MissingRequiredParameterException": apart,
	"RequestEntityTooLarge":             apart,
	"RequestEntityTooLargeException":    apart,
	"SerializationException":            apart,
	"TooManyEntriesInBatchRequest":      apart,
	"UnsupportedOperation":              apart,
	"ValidationError":                   apart,
	"ValidationException":               apart,

	// Codes about the queue.
	"InvalidAddress":            access,
	"InvalidAttributeName":      final,
	"InvalidAttributeValue":     final,
	"InvalidIdFormat":           final,
	"MessageNotInflight":        final,
	"NonExistentQueue":          access,
	"PurgeQueueInProgress":      final,
	"QueueAlreadyExists":        final,
	"QueueDeletedRecently":      access,
	"QueueDoesNotExist":         access,
	"QueueNameExists":           final,
	"ReceiptHandleIsInvalid":    final,
	"ResourceNotFoundException": access,

	// Codes about permissions and the signature.
	"AccessDenied":                        access,
	"AccessDeniedException":               access,
	"IncompleteSignature":                 access,
	"IncompleteSignatureException":        access,
	"InvalidAccessKeyId":                  access,
	"InvalidClientTokenId":                access,
	"InvalidSecurity":                     access,
	"MissingAuthenticationToken":          access,
	"MissingAuthenticationTokenException": access,
	"NotAuthorized":                       access,
	"OptInRequired":                       access,
	"UnauthorizedOperation":               access,
	"UnrecognizedClientException":         access,

	// Codes about the queue's encryption key.
	"KmsAccessDenied":              access,
	"KmsDisabled":                  access,
	"KmsInvalidKeyUsage":           access,
	"KmsInvalidState":              access,
	"KmsNotFound":                  access,
	"KmsOptInRequired":             access,
	"KMS.AccessDeniedException":    access,
	"KMS.DisabledException":        access,
	"KMS.InvalidKeyUsageException": access,
	"KMS.InvalidStateException":    access,
	"KMS.NotFoundException":        access,
	"KMS.OptInRequired":            access,

	// Codes about the form of the request.
	"InvalidAction":             final,
	"InvalidQueryParameter":     final,
	"MalformedQueryString":      final,
	"MissingAction":             final,
	"UnknownOperationException": final,

	// Codes about a signature with a wrong time or with expired credentials.
	"AuthFailure":               skew,
	"ExpiredToken":              skew,
	"ExpiredTokenException":     skew,
	"InvalidSignature":          skew,
	"InvalidSignatureException": skew,
	"RequestExpired":            skew,
	"RequestInTheFuture":        skew,
	"RequestTimeTooSkewed":      skew,
	"SignatureDoesNotMatch":     skew,

	// Codes of a failure in SQS.
	"InternalError":               service,
	"InternalFailure":             service,
	"InternalServerError":         service,
	"InternalServiceError":        service,
	"ServiceUnavailable":          service,
	"ServiceUnavailableException": service,

	// After these codes, SQS may or may not have stored the messages. The table has them
	// only so that their texts may be shown (see the variable `known`).
	"RequestTimeout":          unknown,
	"RequestTimeoutException": unknown,
}

// LoadOf returns LoadThrottled for an error code of a throttle, otherwise LoadTroubled, also
// for an empty code (an error without an answer).
func LoadOf(code string) attempt.Load {
	if classify(code) == throttle {
		return attempt.LoadThrottled
	}
	return attempt.LoadTroubled
}
