package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Error is an error as the service answers it.
type Error struct {
	// Shape is the error's name in the AWS JSON protocol, and Query its legacy code, which the SDK prefers.
	Shape, Query string
	Message      string
	// Status is the HTTP status; 0 is 400.
	Status int
}

// Error implements error.
func (e *Error) Error() string { return e.Query + ": " + e.Message }

// Throttled says that there were too many requests. See [Service.Fail].
func Throttled() *Error {
	return &Error{Shape: "com.amazonaws.sqs#RequestThrottled", Query: "RequestThrottled", Message: "The request was denied due to request throttling.", Status: http.StatusForbidden}
}

// OverLimit says that too many messages are in flight.
func OverLimit() *Error {
	return &Error{Shape: "com.amazonaws.sqs#OverLimit", Query: "OverLimit", Message: "Too many messages in flight."}
}

// Internal is a failure of the service.
func Internal() *Error {
	return &Error{Shape: "com.amazon.coral.service#InternalFailure", Query: "InternalFailure", Message: "We encountered an internal error. Please try again.", Status: http.StatusInternalServerError}
}

// AccessDenied says that a permission is missing.
func AccessDenied(action, arn string) *Error {
	return &Error{
		Shape: "com.amazon.coral.service#AccessDeniedException", Query: "AccessDenied", Status: http.StatusForbidden,
		Message: fmt.Sprintf("User: arn:aws:iam::%s:user/test is not authorized to perform: %s on resource: %s because no identity-based policy allows the %[2]s action", Account, action, arn),
	}
}

// invalid says what is wrong with a parameter.
func invalid(format string, args ...any) *Error {
	return &Error{Shape: "com.amazon.coral.service#InvalidParameterValueException", Query: "InvalidParameterValue", Message: fmt.Sprintf(format, args...)}
}

func missing(parameter string) *Error {
	return &Error{
		Shape: "com.amazon.coral.service#MissingRequiredParameterException", Query: "MissingParameter",
		Message: "The request must contain the parameter " + parameter + ".",
	}
}

func modelled(shape, query, message string) *Error {
	return &Error{Shape: "com.amazonaws.sqs#" + shape, Query: "AWS.SimpleQueueService." + query, Message: message}
}

func noQueue() *Error {
	return modelled("QueueDoesNotExist", "NonExistentQueue", "The specified queue does not exist.")
}

func malformedHandle(handle string) *Error {
	return &Error{
		Shape: "com.amazonaws.sqs#ReceiptHandleIsInvalid", Query: "ReceiptHandleIsInvalid",
		Message: fmt.Sprintf("The input receipt handle %q is not a valid receipt handle.", handle),
	}
}

// write answers an error.
func (e *Error) write(w http.ResponseWriter) {
	status, fault := e.Status, "Sender"
	if status == 0 {
		status = http.StatusBadRequest
	}
	if status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	w.Header().Set("X-Amzn-Query-Error", e.Query+";"+fault)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": e.Shape, "message": e.Message})
}

// entry is an error of one entry of a batch.
func (e *Error) entry(id string) entryError {
	return entryError{ID: id, Code: e.Query, Message: e.Message, SenderFault: e.Status < http.StatusInternalServerError}
}

type entryError struct {
	ID          string `json:"Id"`
	Code        string
	Message     string
	SenderFault bool
}
