package sqsapi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// code is the service's code for an error, without the prefix of the legacy
// protocol; "" where the service did not answer.
func code(err error) string {
	var said *Error
	if api := answered(err); api != nil {
		return short(api.ErrorCode())
	}
	if errors.As(err, &said) {
		return said.Code
	}
	return ""
}

// nobody is the code that the SDK gives to an error of which the answer says
// none: what is between here and the service has answered, a load balancer say.
const nobody = "UnknownError"

// answered is what the service said; nil where it did not.
func answered(err error) smithy.APIError {
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() != nobody {
		return api
	}
	return nil
}

func short(code string) string { return strings.TrimPrefix(code, "AWS.SimpleQueueService.") }

// Throttled says that the service takes no more requests for the moment.
func Throttled(err error) bool {
	var throttled *types.RequestThrottled
	return errors.As(err, &throttled) || throttledCode(code(err))
}

func throttledCode(code string) bool {
	_, known := retry.DefaultThrottleErrorCodes[code]
	return known || code == "KMS.ThrottlingException" || code == "KmsThrottled"
}

// Denied says that the caller may not do that; key says that it may not use the
// queue's encryption key.
func Denied(err error) (denied, key bool) {
	switch code(err) {
	case "KMS.AccessDeniedException", "KmsAccessDenied":
		return true, true
	case "AccessDenied", "AccessDeniedException", "AuthorizationError", "UnauthorizedOperation":
		return true, false
	default:
		return false, false
	}
}

// BadCredentials says that the service does not know the caller.
func BadCredentials(err error) bool {
	return slices.Contains([]string{
		"InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "InvalidSignatureException", "InvalidSecurity",
		"ExpiredToken", "ExpiredTokenException", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "InvalidAccessKeyId",
	}, code(err))
}

// Gone says that the queue does not exist.
func Gone(err error) bool {
	var gone *types.QueueDoesNotExist
	return errors.As(err, &gone) || code(err) == "NonExistentQueue" || code(err) == "QueueDoesNotExist"
}

// OverLimit says that as many messages of the queue are in flight as may be.
func OverLimit(err error) bool {
	var over *types.OverLimit
	return errors.As(err, &over) || code(err) == "OverLimit"
}

// Unanswered says that the service did not answer: nobody knows what it did.
func Unanswered(err error) bool { return err != nil && code(err) == "" }

// TooLong says that a batch has more bytes than one may have: in some regions
// that is less than [BytesMax].
func TooLong(err error) bool {
	var long *types.BatchRequestTooLong
	return errors.As(err, &long) || code(err) == "BatchRequestTooLong"
}

// Hopeless says that the same request will fail again.
func Hopeless(err error) bool {
	if denied, _ := Denied(err); denied || Gone(err) || BadCredentials(err) {
		return true
	}
	api := answered(err)
	return api != nil && api.ErrorFault() == smithy.FaultClient && !Throttled(err) && !OverLimit(err)
}

// Again says whether an entry of a batch that failed is worth another request:
// its handle may be as good as before.
func Again(entry types.BatchResultErrorEntry) bool {
	return !entry.SenderFault || entry.Code != nil && throttledCode(short(*entry.Code))
}

// EntryError is what the service said of an entry of a batch.
func EntryError(entry types.BatchResultErrorEntry) error {
	said, why := "", ""
	if entry.Code != nil {
		said = short(*entry.Code)
	}
	if entry.Message != nil {
		why = *entry.Message
	}
	return &Error{Code: said, Message: why}
}

// Error is what the service said, without what the SDK knows about the request.
type Error struct{ Code, Message string }

// Error implements error.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Code
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Said is what the service said, or err where it did not answer.
func Said(err error) error {
	if api := answered(err); api != nil {
		return &Error{Code: short(api.ErrorCode()), Message: api.ErrorMessage()}
	}
	return err
}
