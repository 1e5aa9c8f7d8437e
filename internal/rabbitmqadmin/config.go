package rabbitmqadmin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// DefaultRequestTimeout bounds one try of one request.
	DefaultRequestTimeout = 30 * time.Second
	// DefaultMaxRetries is how often a request is tried again.
	DefaultMaxRetries = 4
	// DefaultStatisticsInterval is how old the brokers' message counts may be by default.
	DefaultStatisticsInterval = 5 * time.Second

	defaultUserAgent = "terraform-provider-redeliver"
)

// Config says which broker a [Client] talks to, and how.
type Config struct {
	// Endpoints are the addresses of the management API, "http://host:15672" or "https://...", with or without a path
	// prefix (what is in front of "/api") and a trailing slash. All must belong to one cluster: the first that answers
	// is used, the others when it fails. Credentials in them are refused.
	Endpoints []string
	// AMQPEndpoints are "amqp://host:5672" or "amqps://host:5671", of the same cluster and for the same user. With them
	// [Client.SafeDelete] asks for exact depths and need not wait for the statistics. Optional.
	AMQPEndpoints []string
	// Username and Password authenticate every request and connection. An empty Username sends no basic authentication:
	// Headers may carry another one, or the server in front of the management API add one.
	Username, Password string
	// Token returns an OAuth 2 access token, which authenticates instead of a user and a password. It is asked before
	// every request and connection, so that one which was renewed is used at once. Its error is shown, and ends the call.
	Token func() (string, error)
	// External authenticates AMQP connections by the client certificate in TLS (the SASL mechanism EXTERNAL), and not by
	// what authenticates requests to the management API, which knows no certificates.
	External bool
	// Proxy is the HTTP proxy that requests to the management API take; nil is what HTTP_PROXY, HTTPS_PROXY and NO_PROXY
	// of the environment say. AMQP takes none.
	Proxy *url.URL
	// TLS is used for https and amqps; nil verifies against the system's roots. It is copied.
	TLS *tls.Config
	// Headers are sent with every request to the management API, in addition to the client's own and instead of them
	// where the names are the same. Their values count as secrets.
	Headers http.Header
	// RequestTimeout bounds every try of every request, its body included; 0 is [DefaultRequestTimeout].
	RequestTimeout time.Duration
	// MaxRetries is how often a request that failed on every endpoint is tried again: after a broken or refused
	// connection, a timeout, a 429 and a 5xx. 0 is [DefaultMaxRetries]; negative is none (other endpoints are still
	// tried).
	MaxRetries int
	// UserAgent is sent with every request; "" is the provider's name.
	UserAgent string
	// StatisticsInterval is the broker's own: the larger of collect_statistics_interval and quorum_tick_interval, which
	// no API tells. 0 is [DefaultStatisticsInterval], theirs. A value smaller than the broker's makes
	// [Client.SafeDelete] believe counts that are too old.
	StatisticsInterval time.Duration
	// Logf is told what the client does: requests, retries, waits. Neither credentials nor header values nor bodies are
	// in it. Optional. It is called from several goroutines.
	Logf func(ctx context.Context, msg string, fields map[string]any)
}

// withDefaults fills in what is left out.
func (cfg Config) withDefaults() Config {
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = DefaultRequestTimeout
	}
	switch {
	case cfg.MaxRetries == 0:
		cfg.MaxRetries = DefaultMaxRetries
	case cfg.MaxRetries < 0:
		cfg.MaxRetries = 0
	}
	if cfg.StatisticsInterval == 0 {
		cfg.StatisticsInterval = DefaultStatisticsInterval
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = defaultUserAgent
	}
	if cfg.Logf == nil {
		cfg.Logf = func(context.Context, string, map[string]any) {}
	}
	cfg.Headers = cfg.Headers.Clone()
	return cfg
}

// validate refuses what cannot work. No value that may be secret is quoted.
func (cfg Config) validate() error {
	switch {
	case len(cfg.Endpoints) == 0:
		return errors.New(`no endpoint of RabbitMQ's management API is given: set at least one, such as "http://localhost:15672"`)
	case cfg.RequestTimeout < 0:
		return fmt.Errorf("the request timeout is %s: it has to be positive, or 0 for %s", cfg.RequestTimeout, DefaultRequestTimeout)
	case cfg.StatisticsInterval < 0:
		return fmt.Errorf("the statistics interval is %s: it has to be positive, or 0 for %s", cfg.StatisticsInterval, DefaultStatisticsInterval)
	case strings.Contains(cfg.Username, ":"):
		return errors.New("the user name has a colon in it, which basic authentication cannot carry: use another user")
	case cfg.Username == "" && cfg.Password != "":
		return errors.New("a password is given without a user name: set both, or neither")
	case cfg.Token != nil && cfg.Username != "":
		return errors.New("a token and a user name are given, and either authenticates: set one of them")
	case cfg.External && (cfg.TLS == nil || len(cfg.TLS.Certificates) == 0):
		return errors.New("EXTERNAL authenticates by a client certificate, and none is given: set one, with its key")
	case cfg.External && slices.ContainsFunc(cfg.AMQPEndpoints, func(a string) bool { return !strings.HasPrefix(a, "amqps://") }):
		return errors.New("EXTERNAL authenticates by the certificate of a TLS connection, and an AMQP endpoint is without TLS: it has to begin with amqps://")
	case cfg.Proxy != nil && (cfg.Proxy.Host == "" || cfg.Proxy.Scheme != "http" && cfg.Proxy.Scheme != "https"):
		return errors.New("the HTTP proxy has to be an address like http://HOST:PORT or https://HOST:PORT")
	case !validHeaderValue(cfg.UserAgent):
		return errors.New("the user agent has a line break or another control character in it: remove it")
	}
	for name, values := range cfg.Headers {
		if !validHeaderName(name) {
			return fmt.Errorf("header %q: this is not the name of an HTTP header; use letters, digits and hyphens", name)
		}
		for _, value := range values {
			if !validHeaderValue(value) {
				return fmt.Errorf("header %q: its value has a line break or another control character in it; remove it (is there a newline at the end of a file it was read from?)", name)
			}
		}
	}
	return nil
}

// validHeaderName reports whether name is a token as RFC 9110 has it.
func validHeaderName(name string) bool {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("!#$%&'*+-.^_`|~", r):
		default:
			return false
		}
	}
	return name != ""
}

// validHeaderValue keeps a value from ending its header and starting another.
func validHeaderValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
