package sqstest

// Deviations from AWS in this file: some error messages of AWS are not known. The fake has
// its own texts for these errors, and the word "unrecorded" in the code marks each of them.

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/uuid"
)

// errorClass is one kind of error. The in-process API makes the caller's error value with
// newSDKError. An answer over HTTP has the status, the shape and the query code (F-130,
// F-131).
type errorClass struct {
	status int

	// query is the error's code in the older query protocol. SDKs take it from the header
	// x-amzn-query-error and return it in place of the shape's name.
	query string

	// shape is the __type of the JSON answer.
	shape string

	fault smithy.ErrorFault

	// newSDKError is nil if the SDK has only smithy.GenericAPIError for the shape.
	newSDKError func(message, code *string) error
}

// The namespaces of error names (F-131): SQS's namespace for errors in its service
// model, and the framework's namespace for errors of any AWS service.
const (
	serviceShape   = "com.amazonaws.sqs#"
	frameworkShape = "com.amazon.coral.service#"
	legacyCode     = "AWS.SimpleQueueService."
)

// withoutSDKType returns a class for an error that SQS's service model does not list. The
// SDK has no type for such an error. The class says that the client is at fault.
func withoutSDKType(status int, query, shape string) *errorClass {
	return &errorClass{status: status, query: query, shape: shape, fault: smithy.FaultClient}
}

// withSDKType returns a class for an error with the SDK type T, such as types.OverLimit.
// The name of T is also the error's name in SQS's service model.
func withSDKType[T any](status int, query string) *errorClass {
	c := withoutSDKType(status, query, serviceShape+reflect.TypeFor[T]().Name())
	c.newSDKError = func(message, code *string) error {
		e := reflect.New(reflect.TypeFor[T]())
		e.Elem().FieldByName("Message").Set(reflect.ValueOf(message))
		e.Elem().FieldByName("ErrorCodeOverride").Set(reflect.ValueOf(code))
		return e.Interface().(error)
	}
	return c
}

var (
	invalidParameterValue = withoutSDKType(400, "InvalidParameterValue", frameworkShape+"InvalidParameterValueException")
	missingParameter      = withoutSDKType(400, "MissingParameter", frameworkShape+"MissingRequiredParameterException")
	serializationFailed   = withoutSDKType(400, "SerializationException", frameworkShape+"SerializationException")
	unknownOperation      = withoutSDKType(400, "UnknownOperationException", frameworkShape+"UnknownOperationException")
	requestTimeout        = withoutSDKType(408, "RequestTimeout", frameworkShape+"RequestTimeoutException")
	requestTooLarge       = withoutSDKType(413, "RequestEntityTooLarge", frameworkShape+"RequestEntityTooLargeException")

	queueDoesNotExist      = withSDKType[types.QueueDoesNotExist](400, legacyCode+"NonExistentQueue")
	invalidMessageContents = withSDKType[types.InvalidMessageContents](400, "InvalidMessageContents")
	receiptHandleIsInvalid = withSDKType[types.ReceiptHandleIsInvalid](404, "ReceiptHandleIsInvalid")
	invalidAttributeName   = withSDKType[types.InvalidAttributeName](400, "InvalidAttributeName")
	overLimit              = withSDKType[types.OverLimit](403, "OverLimit")
	unsupportedOperation   = withSDKType[types.UnsupportedOperation](400, legacyCode+"UnsupportedOperation")
	requestThrottled       = withSDKType[types.RequestThrottled](403, "RequestThrottled")

	emptyBatchRequest   = withSDKType[types.EmptyBatchRequest](400, legacyCode+"EmptyBatchRequest")
	tooManyEntries      = withSDKType[types.TooManyEntriesInBatchRequest](400, legacyCode+"TooManyEntriesInBatchRequest")
	entryIDsNotDistinct = withSDKType[types.BatchEntryIdsNotDistinct](400, legacyCode+"BatchEntryIdsNotDistinct")
	invalidEntryID      = withSDKType[types.InvalidBatchEntryId](400, legacyCode+"InvalidBatchEntryId")
	batchTooLong        = withSDKType[types.BatchRequestTooLong](400, legacyCode+"BatchRequestTooLong")

	invalidAttributeValue = withSDKType[types.InvalidAttributeValue](400, "InvalidAttributeValue")
	queueNameExists       = withSDKType[types.QueueNameExists](400, "QueueAlreadyExists")
	queueDeletedRecently  = withSDKType[types.QueueDeletedRecently](400, legacyCode+"QueueDeletedRecently")
	purgeInProgress       = withSDKType[types.PurgeQueueInProgress](403, legacyCode+"PurgeQueueInProgress")
	resourceNotFound      = withSDKType[types.ResourceNotFoundException](404, "ResourceNotFoundException")

	serviceUnavailable = &errorClass{
		status: http.StatusServiceUnavailable, query: "ServiceUnavailable",
		shape: frameworkShape + "ServiceUnavailableException", fault: smithy.FaultServer,
	}
	internalFailure = &errorClass{
		status: http.StatusInternalServerError, query: "InternalFailure",
		shape: frameworkShape + "InternalFailure", fault: smithy.FaultServer,
	}
)

// apiError is a refusal of a call. Wire format and in-process API convert it into their
// own errors.
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

// unwrapped returns the refusal as an error value of the SDK, such as *types.OverLimit.
// An *sqs.Client returns this value wrapped in other errors.
func (e *apiError) unwrapped() error {
	if e.class.newSDKError == nil {
		return &smithy.GenericAPIError{Code: e.class.query, Message: e.message, Fault: e.class.fault}
	}
	code := e.class.query
	return e.class.newSDKError(&e.message, &code)
}

// entry returns the refusal as an element of Failed, the list of failed entries in the
// answer to a batch (F-058, F-059, F-063).
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
		wrapped.Err = e.unwrapped()
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
