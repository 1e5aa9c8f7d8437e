package sqsadmin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// ErrNotFound is that SQS says the queue does not exist.
var ErrNotFound = errors.New("not found")

// Error is an answer that is not the one that was asked for, or none.
type Error struct {
	// Op is what was being done: "read", "create", ...
	Op string
	// Queue names the queue: by its ARN.
	Queue string
	// Reason is what SQS said, or why it did not say anything.
	Reason string
	// Advice is what to do about it; it may be empty.
	Advice string

	cause error
}

// Error says what was being done to what, what SQS said, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot %s %s: %s", e.Op, e.Queue, e.Reason)
	if e.Advice != "" {
		b.WriteString("; " + e.Advice)
	}
	return b.String()
}

// Is makes errors.Is work with [ErrNotFound].
func (e *Error) Is(target error) bool { return target == ErrNotFound && isMissing(e.cause) }

// Unwrap returns what the AWS SDK returned.
func (e *Error) Unwrap() error { return e.cause }

// refused wraps an error of an operation on a queue. action is the IAM action that the operation takes.
func refused(op, arn, action string, err error) error {
	return &Error{Op: op, Queue: object(arn), Reason: reason(err), Advice: advice(action, arn, err), cause: err}
}

// failure wraps an error of an operation on no queue.
func failure(action string, err error) error {
	text := reason(err)
	if more := advice(action, "", err); more != "" {
		text += "; " + more
	}
	return &spoken{text: text, cause: err}
}

// spoken is an error with a text of its own.
type spoken struct {
	text  string
	cause error
}

func (e *spoken) Error() string { return e.text }
func (e *spoken) Unwrap() error { return e.cause }

// object names a queue with where it is.
func object(arn string) string {
	id, queue, err := topology.ParseSQSARN(arn)
	if err != nil {
		return fmt.Sprintf("queue %q", arn)
	}
	return fmt.Sprintf("queue %q in region %s of account %s", queue, id.Region, id.Account)
}

// isMissing reports whether SQS says that a queue does not exist.
func isMissing(err error) bool {
	var missing *types.QueueDoesNotExist
	return errors.As(err, &missing)
}

// nobody is the code that the SDK gives to an error of which the answer says none: something in between has answered.
const nobody = "UnknownError"

// reason is what the service said, without the SDK's wrapping; or else why it said nothing.
func reason(err error) string {
	var (
		answer   smithy.APIError
		response *smithyhttp.ResponseError
		request  *smithyhttp.RequestSendError
	)
	var operation *smithy.OperationError
	service := "SQS"
	for next := err; errors.As(next, &operation); next = operation.Err { // the innermost: a request for credentials, say
		service = operation.ServiceID
	}
	switch {
	case errors.As(err, &answer) && answer.ErrorCode() != nobody:
		return strings.TrimSuffix(fmt.Sprintf("%s said %s: %s", service, code(answer), oneLine(answer.ErrorMessage())), ": ")
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &request):
		return "no answer: " + request.Err.Error()
	case errors.As(err, &response):
		return fmt.Sprintf("the answer with status %d is not one of %s", response.HTTPStatusCode(), service)
	case operation != nil:
		return operation.Err.Error()
	}
	return err.Error()
}

// code is the code of an error without the prefix of SQS's older protocol.
func code(answer smithy.APIError) string {
	text := answer.ErrorCode()
	if kms, ok := strings.CutPrefix(text, "KMS."); ok {
		return "Kms" + strings.TrimSuffix(kms, "Exception")
	}
	if i := strings.LastIndexAny(text, "#."); i >= 0 && i < len(text)-1 {
		text = text[i+1:]
	}
	return text
}

// oneLine leaves the first line: a bad signature is answered with the whole request.
func oneLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(strings.TrimSuffix(first, "."))
}

// advice is what to do about an error.
func advice(action, arn string, err error) string {
	var answer smithy.APIError
	if !errors.As(err, &answer) || answer.ErrorCode() == nobody {
		var (
			response *smithyhttp.ResponseError
			request  *smithyhttp.RequestSendError
		)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return ""
		case errors.As(err, &request):
			return "are sqs.region and sqs.endpoint right, and can this machine reach them?"
		case errors.As(err, &response):
			return "is sqs.endpoint the address of SQS, and no proxy in between?"
		}
		return "are there credentials? Set access_key and secret_key, or profile, in sqs = { } of the provider block, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or AWS_PROFILE in the environment"
	}
	switch c := code(answer); {
	case strings.HasPrefix(c, "Kms"):
		return adviceKMS(c)
	case c == "AccessDenied" || c == "AccessDeniedException" || c == "AuthorizationError" || c == "UnauthorizedOperation":
		if action == "" {
			return ""
		}
		if arn == "" {
			arn = "*"
		}
		return fmt.Sprintf("the identity that Terraform works as lacks the IAM action %s on %s, or a policy denies it (one of the organisation, a permissions boundary, or the queue's own)", action, arn)
	case c == "ExpiredToken" || c == "ExpiredTokenException" || c == "RequestExpired":
		return "the credentials expired: get new ones"
	case c == "InvalidClientTokenId" || c == "UnrecognizedClientException" || c == "SignatureDoesNotMatch" || c == "InvalidAccessKeyId" ||
		c == "InvalidSignatureException" || c == "IncompleteSignature" || c == "MissingAuthenticationToken" || c == "InvalidSecurity":
		return "the credentials are not valid here: are access_key and secret_key (or the environment's, or the profile's) those of this account and partition, session_token with them, and is the clock right?"
	case c == "QueueDeletedRecently":
		return "a name can be used again a minute after its queue was deleted: raise timeouts.create, or apply again"
	case c == "RequestThrottled" || c == "ThrottlingException" || c == "Throttling" || c == "TooManyRequestsException":
		return "AWS limits the requests of an account: raise sqs.max_retries, or lower the parallelism (terraform apply -parallelism=2)"
	case c == "InvalidAddress":
		return "is the account_id right?"
	}
	return ""
}

// adviceKMS is what to do about an error of the key service.
func adviceKMS(code string) string {
	switch code {
	case "KmsAccessDenied":
		return "the identity, or the key's own policy, does not allow it: kms:GenerateDataKey and kms:Decrypt on the key in kms_key"
	case "KmsDisabled":
		return "the key in kms_key is disabled: enable it, or use another"
	case "KmsNotFound":
		return "there is no key as kms_key names it in this region: write its id, its ARN or alias/NAME"
	case "KmsInvalidState":
		return "the key in kms_key is not ready for use, or pending deletion: use another"
	case "KmsInvalidKeyUsage":
		return "the key in kms_key is not a symmetric encryption key: use one that is"
	case "KmsOptInRequired":
		return "the account is not subscribed to KMS"
	case "KmsThrottled", "KmsThrottling":
		return "KMS limits the requests of an account: apply again, or raise kms_data_key_reuse, for which SQS keeps a data key"
	}
	return ""
}
