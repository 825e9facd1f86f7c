package sqstest

// Deviations from AWS in this file: the fake has its own texts for the errors of AWS
// that were not recorded. The code marks these texts "unrecorded".

import (
	"fmt"
	"net/http"
	"net/url"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/uuid"
)

// errorClass is one kind of error in both APIs. Over HTTP the answer has a status, the
// name of the error's type (shape) and a code of the older query protocol (F-130, F-131).
// In process the caller gets the SDK's error value for the same three.
type errorClass struct {
	status int

	// query is the code of the error in the older query protocol. AWS sends this code in
	// the header x-amzn-query-error, and SDKs use it in place of the shape's name.
	query string

	// shape is the __type of the JSON answer.
	shape string

	fault smithy.ErrorFault

	// modelled makes the SDK's error value for the shape. It is nil for a shape outside
	// the service model: the SDK then returns a smithy.GenericAPIError.
	modelled func(message, code *string) error
}

// The namespaces of error names (F-131): SQS's namespace for errors in its service
// model, and the framework's namespace for errors of any AWS service.
const (
	serviceShape   = "com.amazonaws.sqs#"
	frameworkShape = "com.amazon.coral.service#"
	legacyCode     = "AWS.SimpleQueueService."
)

func sender(status int, query, shape string, modelled func(message, code *string) error) *errorClass {
	return &errorClass{status: status, query: query, shape: shape, fault: smithy.FaultClient, modelled: modelled}
}

var (
	invalidParameterValue = sender(400, "InvalidParameterValue", frameworkShape+"InvalidParameterValueException", nil)
	missingParameter      = sender(400, "MissingParameter", frameworkShape+"MissingRequiredParameterException", nil)
	serializationFailed   = sender(400, "SerializationException", frameworkShape+"SerializationException", nil)
	unknownOperation      = sender(400, "UnknownOperationException", frameworkShape+"UnknownOperationException", nil)
	requestTimeout        = sender(408, "RequestTimeout", frameworkShape+"RequestTimeoutException", nil)
	requestTooLarge       = sender(413, "RequestEntityTooLarge", frameworkShape+"RequestEntityTooLargeException", nil)

	queueDoesNotExist = sender(400, legacyCode+"NonExistentQueue", serviceShape+"QueueDoesNotExist",
		func(m, c *string) error { return &types.QueueDoesNotExist{Message: m, ErrorCodeOverride: c} })
	invalidMessageContents = sender(400, "InvalidMessageContents", serviceShape+"InvalidMessageContents",
		func(m, c *string) error { return &types.InvalidMessageContents{Message: m, ErrorCodeOverride: c} })
	receiptHandleIsInvalid = sender(404, "ReceiptHandleIsInvalid", serviceShape+"ReceiptHandleIsInvalid",
		func(m, c *string) error { return &types.ReceiptHandleIsInvalid{Message: m, ErrorCodeOverride: c} })
	invalidAttributeName = sender(400, "InvalidAttributeName", serviceShape+"InvalidAttributeName",
		func(m, c *string) error { return &types.InvalidAttributeName{Message: m, ErrorCodeOverride: c} })
	overLimit = sender(403, "OverLimit", serviceShape+"OverLimit",
		func(m, c *string) error { return &types.OverLimit{Message: m, ErrorCodeOverride: c} })
	unsupportedOperation = sender(400, legacyCode+"UnsupportedOperation", serviceShape+"UnsupportedOperation",
		func(m, c *string) error { return &types.UnsupportedOperation{Message: m, ErrorCodeOverride: c} })
	requestThrottled = sender(403, "RequestThrottled", serviceShape+"RequestThrottled",
		func(m, c *string) error { return &types.RequestThrottled{Message: m, ErrorCodeOverride: c} })

	emptyBatchRequest = sender(400, legacyCode+"EmptyBatchRequest", serviceShape+"EmptyBatchRequest",
		func(m, c *string) error { return &types.EmptyBatchRequest{Message: m, ErrorCodeOverride: c} })
	tooManyEntries = sender(400, legacyCode+"TooManyEntriesInBatchRequest", serviceShape+"TooManyEntriesInBatchRequest",
		func(m, c *string) error { return &types.TooManyEntriesInBatchRequest{Message: m, ErrorCodeOverride: c} })
	entryIDsNotDistinct = sender(400, legacyCode+"BatchEntryIdsNotDistinct", serviceShape+"BatchEntryIdsNotDistinct",
		func(m, c *string) error { return &types.BatchEntryIdsNotDistinct{Message: m, ErrorCodeOverride: c} })
	invalidEntryID = sender(400, legacyCode+"InvalidBatchEntryId", serviceShape+"InvalidBatchEntryId",
		func(m, c *string) error { return &types.InvalidBatchEntryId{Message: m, ErrorCodeOverride: c} })
	batchTooLong = sender(400, legacyCode+"BatchRequestTooLong", serviceShape+"BatchRequestTooLong",
		func(m, c *string) error { return &types.BatchRequestTooLong{Message: m, ErrorCodeOverride: c} })

	invalidAttributeValue = sender(400, "InvalidAttributeValue", serviceShape+"InvalidAttributeValue",
		func(m, c *string) error { return &types.InvalidAttributeValue{Message: m, ErrorCodeOverride: c} })
	queueNameExists = sender(400, "QueueAlreadyExists", serviceShape+"QueueNameExists",
		func(m, c *string) error { return &types.QueueNameExists{Message: m, ErrorCodeOverride: c} })
	queueDeletedRecently = sender(400, legacyCode+"QueueDeletedRecently", serviceShape+"QueueDeletedRecently",
		func(m, c *string) error { return &types.QueueDeletedRecently{Message: m, ErrorCodeOverride: c} })
	purgeInProgress = sender(403, legacyCode+"PurgeQueueInProgress", serviceShape+"PurgeQueueInProgress",
		func(m, c *string) error { return &types.PurgeQueueInProgress{Message: m, ErrorCodeOverride: c} })
	resourceNotFound = sender(404, "ResourceNotFoundException", serviceShape+"ResourceNotFoundException",
		func(m, c *string) error { return &types.ResourceNotFoundException{Message: m, ErrorCodeOverride: c} })

	serviceUnavailable = &errorClass{
		status: http.StatusServiceUnavailable, query: "ServiceUnavailable",
		shape: frameworkShape + "ServiceUnavailableException", fault: smithy.FaultServer,
	}
	internalFailure = &errorClass{
		status: http.StatusInternalServerError, query: "InternalFailure",
		shape: frameworkShape + "InternalFailure", fault: smithy.FaultServer,
	}
)

// apiError is a refusal of a call. The wire format and the in-process API each convert
// it into their own form of error.
type apiError struct {
	class   *errorClass
	message string
}

func (e *apiError) Error() string { return e.class.query + ": " + e.message }

func (c *errorClass) because(format string, args ...any) *apiError {
	return &apiError{class: c, message: fmt.Sprintf(format, args...)}
}

func missing(parameter string) *apiError {
	return missingParameter.because("The request must contain the parameter %s.", parameter)
}

func invalidValue(value any, parameter, reason string) *apiError {
	return invalidParameterValue.because("Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

// sdkType returns the innermost error of the refusal. An *sqs.Client returns the same
// error, wrapped in further errors.
func (e *apiError) sdkType() error {
	if e.class.modelled == nil {
		return &smithy.GenericAPIError{Code: e.class.query, Message: e.message, Fault: e.class.fault}
	}
	code := e.class.query
	return e.class.modelled(&e.message, &code)
}

// entry returns the refusal in the form of an entry of the list Failed in a batch
// answer (F-058, F-059, F-063).
func (e *apiError) entry(id *string) types.BatchResultErrorEntry {
	code := e.class.query
	return types.BatchResultErrorEntry{
		Id: id, Code: &code, Message: &e.message, SenderFault: e.class.fault == smithy.FaultClient,
	}
}

// connectionError is the error of a connection that broke before the answer came. The
// caller cannot know whether the queue stored anything.
type connectionError struct{ cause error }

func (e *connectionError) Error() string {
	return "connection broken before the answer: " + e.cause.Error()
}
func (e *connectionError) Unwrap() error { return e.cause }

// sdkError wraps an error of the in-process API in the same types as an *sqs.Client
// wraps its errors, so that callers classify both alike.
func sdkError(operation string, err error) error {
	answer := &smithyhttp.Response{Response: &http.Response{Header: http.Header{}, Body: http.NoBody}}
	wrapped := &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{Response: answer}}
	switch e := err.(type) {
	case *apiError:
		wrapped.RequestID = uuid.NewString()
		answer.StatusCode = e.class.status
		answer.Header.Set(requestIDHeader, wrapped.RequestID)
		wrapped.Err = e.sdkType()
	case *connectionError:
		wrapped.Err = &smithyhttp.RequestSendError{Err: &url.Error{Op: "Post", URL: endpoint + "/", Err: e.cause}}
	case *truncatedError:
		answer.StatusCode = http.StatusOK
		wrapped.Err = &smithy.DeserializationError{Err: e}
	default:
		wrapped.Err = &smithy.CanceledError{Err: err}
	}
	return &smithy.OperationError{ServiceID: sqs.ServiceID, OperationName: operation, Err: wrapped}
}
