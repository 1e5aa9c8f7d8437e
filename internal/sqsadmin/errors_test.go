package sqsadmin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestErrors: every error says what was being done to which queue, what SQS said, and what to do.
func TestErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"AccessDenied":                "lacks the IAM action sqs:GetQueueAttributes on arn:aws:sqs:eu-west-1:123456789012:orders",
		"AccessDeniedException":       "lacks the IAM action sqs:GetQueueAttributes",
		"KmsAccessDenied":             "kms:GenerateDataKey and kms:Decrypt",
		"KmsNotFound":                 "there is no key as kms_key names it",
		"KmsDisabled":                 "the key in kms_key is disabled",
		"KmsInvalidState":             "not ready for use",
		"KmsInvalidKeyUsage":          "symmetric",
		"KmsThrottled":                "kms_data_key_reuse",
		"KmsOptInRequired":            "not subscribed",
		"ExpiredTokenException":       "the credentials expired",
		"UnrecognizedClientException": "the credentials are not valid here",
		"SignatureDoesNotMatch":       "the credentials are not valid here",
		"RequestThrottled":            "sqs.max_retries",
		"InvalidAddress":              "account_id",
		"QueueDoesNotExist":           "",
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := newService(t, map[string][]answer{"GetQueueAttributes": {{code: code, message: "This is what it says.\nAnd a second line."}}})
			_, err := s.client(&lines{}).Attributes(t.Context(), s.orders())
			mentions(t, err, `cannot read queue "orders" in region eu-west-1 of account 123456789012: SQS said `, "This is what it says", want)
			if is := errors.Is(err, ErrNotFound); is != (code == "QueueDoesNotExist") {
				t.Errorf("not found: %v", is)
			}
		})
	}
}

// TestNoAnswer: what does not answer like SQS is not taken for it.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<html>no such page</html>"))
	}))
	t.Cleanup(proxy.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for url, want := range map[string]string{proxy.URL: "no proxy in between", closed.URL: "can this machine reach them"} {
		s := newService(t, nil)
		s.URL = url
		_, err := s.client(&lines{}).Attributes(t.Context(), s.orders())
		mentions(t, err, want)
		if errors.Is(err, ErrNotFound) {
			t.Errorf("%v is not SQS's word for a queue that is gone", err)
		}
	}
}
