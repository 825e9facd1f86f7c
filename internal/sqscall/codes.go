package sqscall

import "strings"

// class is what an error code of SQS means for the messages of a request that it
// refuses as a whole.
type class uint8

const (
	// unknown: nothing is proven. A code that SQS adds later begins here.
	unknown class = iota

	// throttle: refused for its rate, before it was executed.
	throttle

	// final: refused, and will be refused again.
	final

	// apart: refused for one of its entries, or for their number or size. The whole
	// batch is refused, and its other entries may be accepted (F-050 to F-057).
	apart

	// skew: refused for its signature, which a wrong clock makes. The SDK corrects
	// its clock by the answer, so that it signs the next request correctly.
	skew

	// service: the service failed at an unknown point.
	service
)

// classify returns the class of an error code: the name of a shape of the service
// model, or the name that the older query protocol has for it.
func classify(code string) class {
	return classes[strings.TrimPrefix(code, "AWS.SimpleQueueService.")]
}

// classes has the codes of the service model (SDK v1.52.9, types/errors.go and its
// query names, including those that only other operations use), the framework's
// (F-131), and those that any AWS service answers.
var classes = map[string]class{
	// The rate.
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

	// One of the entries, or all of them together.
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

	// The queue.
	"InvalidAddress":            final,
	"InvalidAttributeName":      final,
	"InvalidAttributeValue":     final,
	"InvalidIdFormat":           final,
	"MessageNotInflight":        final,
	"NonExistentQueue":          final,
	"PurgeQueueInProgress":      final,
	"QueueAlreadyExists":        final,
	"QueueDeletedRecently":      final,
	"QueueDoesNotExist":         final,
	"QueueNameExists":           final,
	"ReceiptHandleIsInvalid":    final,
	"ResourceNotFoundException": final,

	// The permission.
	"AccessDenied":                        final,
	"AccessDeniedException":               final,
	"ExpiredToken":                        final,
	"ExpiredTokenException":               final,
	"IncompleteSignature":                 final,
	"IncompleteSignatureException":        final,
	"InvalidAccessKeyId":                  final,
	"InvalidClientTokenId":                final,
	"InvalidSecurity":                     final,
	"MissingAuthenticationToken":          final,
	"MissingAuthenticationTokenException": final,
	"NotAuthorized":                       final,
	"OptInRequired":                       final,
	"UnauthorizedOperation":               final,
	"UnrecognizedClientException":         final,

	// The key that encrypts the queue.
	"KmsAccessDenied":              final,
	"KmsDisabled":                  final,
	"KmsInvalidKeyUsage":           final,
	"KmsInvalidState":              final,
	"KmsNotFound":                  final,
	"KmsOptInRequired":             final,
	"KMS.AccessDeniedException":    final,
	"KMS.DisabledException":        final,
	"KMS.InvalidKeyUsageException": final,
	"KMS.InvalidStateException":    final,
	"KMS.NotFoundException":        final,
	"KMS.OptInRequired":            final,

	// The form of the request.
	"InvalidAction":             final,
	"InvalidQueryParameter":     final,
	"MalformedQueryString":      final,
	"MissingAction":             final,
	"UnknownOperationException": final,

	// The clock.
	"AuthFailure":               skew,
	"InvalidSignature":          skew,
	"InvalidSignatureException": skew,
	"RequestExpired":            skew,
	"RequestInTheFuture":        skew,
	"RequestTimeTooSkewed":      skew,
	"SignatureDoesNotMatch":     skew,

	// The service.
	"InternalError":               service,
	"InternalFailure":             service,
	"InternalServerError":         service,
	"InternalServiceError":        service,
	"ServiceUnavailable":          service,
	"ServiceUnavailableException": service,
}
