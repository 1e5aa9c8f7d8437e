package sqsadmin

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestInvalidConfig refuses what no client can be made of.
func TestInvalidConfig(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"secret_key is given without access_key": {SecretKey: "s"},
		"access_key is given without secret_key": {AccessKey: "a"},
		"session_token is given without":         {SessionToken: "t"},
		"assume_role has no role_arn":            {AssumeRole: AssumeRole{ExternalID: "x"}},
		`account_id "12345"`:                     {Account: "12345"},
		"endpoint has credentials in it":         {Endpoint: "https://user:hunter2@sqs.example.com"},
		`endpoint "sqs.example.com"`:             {Endpoint: "sqs.example.com"},
	} {
		_, err := New(t.Context(), cfg)
		mentions(t, err, want)
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret is in %v", err)
		}
	}
}

// alone has the SDK see none of the machine's configuration, and asks the address for whatever it would ask AWS.
func alone(t *testing.T, url string) {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "AWS_ENDPOINT_URL_STS": url, "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
}

// TestNothingIsAskedEarly: a client that is made and not used sends no request, and looks for no credentials.
func TestNothingIsAskedEarly(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) }))
	t.Cleanup(server.Close)
	alone(t, server.URL)
	_, err := New(t.Context(), Config{})
	mentions(t, err, "no region is configured", "AWS_REGION")
	if _, err := New(t.Context(), Config{Region: "eu-west-1", AssumeRole: AssumeRole{ARN: "arn:aws:iam::123456789012:role/x"}}); err != nil {
		t.Error(err)
	}
	_, err = New(t.Context(), Config{Region: "eu-west-1", Profile: "nowhere"})
	mentions(t, err, "nowhere")
}

// TestAssumeRole: a role is assumed with the credentials, and its own are what requests are signed with.
func TestAssumeRole(t *testing.T) {
	var asked url.Values
	identities := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		asked = r.PostForm
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprint(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult>
			<AssumedRoleUser><Arn>arn:aws:sts::210987654321:assumed-role/x/y</Arn><AssumedRoleId>AROA:y</AssumedRoleId></AssumedRoleUser>
			<Credentials><AccessKeyId>TEMPORARY</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
			</AssumeRoleResult></AssumeRoleResponse>`)
	}))
	t.Cleanup(identities.Close)
	alone(t, identities.URL)
	signed := ""
	queues := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed = r.Header.Get("Authorization")
		_, _ = fmt.Fprint(w, "{}")
	}))
	t.Cleanup(queues.Close)
	c, err := New(t.Context(), Config{
		Region: "eu-west-1", Endpoint: queues.URL, AccessKey: "a", SecretKey: "s",
		AssumeRole: AssumeRole{ARN: "arn:aws:iam::210987654321:role/x", SessionName: "y", ExternalID: "z"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Attributes(t.Context(), Address{URL: queues.URL + "/210987654321/orders"}); err != nil {
		t.Fatal(err)
	}
	if asked.Get("RoleArn") != "arn:aws:iam::210987654321:role/x" || asked.Get("RoleSessionName") != "y" || asked.Get("ExternalId") != "z" {
		t.Errorf("STS is asked for %v", asked)
	}
	if !strings.Contains(signed, "Credential=TEMPORARY/") {
		t.Errorf("the request is signed as %s", signed)
	}
	if id, err := c.Account(t.Context()); id != "210987654321" {
		t.Errorf("the account is %s (%v), and is that of the role", id, err)
	}
}

// TestAccount: whose the queues are is configured, or said by the credentials, or asked of STS once.
func TestAccount(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "text/xml")
		_, _ = fmt.Fprint(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>
			<Arn>arn:aws:iam::210987654321:user/x</Arn><UserId>AIDA</UserId><Account>210987654321</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`)
	}))
	t.Cleanup(server.Close)
	alone(t, server.URL)
	account := func(cfg Config) (string, error) {
		cfg.Region, cfg.AccessKey, cfg.SecretKey = "eu-west-1", "a", "s"
		c, err := New(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		first, err := c.Account(t.Context())
		if again, _ := c.Account(t.Context()); again != first {
			t.Errorf("first %s, then %s", first, again)
		}
		return first, err
	}
	if id, err := account(Config{Account: "123456789012"}); id != "123456789012" || asked != 0 {
		t.Errorf("%s, %v, asked %d times", id, err, asked)
	}
	if id, err := account(Config{}); id != "210987654321" || asked != 1 {
		t.Errorf("%s, %v, asked %d times", id, err, asked)
	}
	if id, err := account(Config{Endpoint: "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com"}); id != "210987654321" {
		t.Errorf("%s, %v", id, err)
	}
	t.Setenv("AWS_ENDPOINT_URL_STS", "")
	_, err := account(Config{Endpoint: "http://127.0.0.1:4566"})
	mentions(t, err, "http://127.0.0.1:4566 is no endpoint of AWS", "account_id", "000000000000")
	if !errors.Is(err, ErrNoAccount) {
		t.Errorf("%v", err)
	}
	// The SDK knows the account of credentials from the environment.
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_ACCOUNT_ID", "111122223333")
	c, err := New(t.Context(), Config{Region: "eu-west-1", Endpoint: "http://127.0.0.1:4566"})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := c.Account(t.Context()); id != "111122223333" {
		t.Errorf("%s, %v", id, err)
	}
}
