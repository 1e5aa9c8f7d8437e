package rabbitmqadmin

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rabbitmq/amqp091-go"
)

// authorize puts what authenticates a request into its headers, where rabbit-hole has put basic authentication.
func (cfg Config) authorize(headers http.Header) error {
	switch {
	case cfg.Token != nil:
		token, err := cfg.token()
		if err != nil {
			return err
		}
		headers.Set("Authorization", "Bearer "+token)
	case cfg.Username == "":
		headers.Del("Authorization")
	}
	return nil
}

// token returns the access token of this moment. What is no token is refused here: a header could not carry it.
func (cfg Config) token() (string, error) {
	text, err := cfg.Token()
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrToken, err)
	}
	token := strings.TrimSpace(text)
	if token == "" {
		return "", fmt.Errorf("%w: it is empty", ErrToken)
	}
	if strings.ContainsAny(token, " \t") || !validHeaderValue(token) {
		return "", fmt.Errorf("%w: there are spaces or line breaks in it, so that it is not one token", ErrToken)
	}
	return token, nil
}

// SASL is how an AMQP connection of the same user is authenticated. It is asked for every connection, because a token
// may have been renewed since the last one.
func (cfg Config) SASL() (amqp091.Authentication, error) {
	switch {
	case cfg.External:
		return &amqp091.ExternalAuth{}, nil
	case cfg.Token != nil:
		token, err := cfg.token()
		// RabbitMQ takes the name from the token, and the token for the password.
		return &amqp091.PlainAuth{Password: token}, err
	}
	return &amqp091.PlainAuth{Username: cfg.Username, Password: cfg.Password}, nil
}

// AMQP is how to reach the same broker as the same user over AMQP: its addresses, which are none where none are
// configured, what TLS is made of, and what authenticates each connection.
func (c *Client) AMQP() (endpoints []*url.URL, secure *tls.Config, sasl func() (amqp091.Authentication, error)) {
	if c.amqp != nil {
		endpoints = c.amqp.endpoints
	}
	return endpoints, c.cfg.TLS.Clone(), c.cfg.SASL
}

// identity says in errors as who the management API is asked.
func (cfg Config) identity() string {
	switch {
	case cfg.Token != nil:
		return "the access token's user"
	case cfg.Username == "":
		return "nobody (no user and no token is configured)"
	}
	return fmt.Sprintf("user %q", cfg.Username)
}

// scope says how a token has what is missing; "" where there is no token.
func (cfg Config) scope(missing string) string {
	if cfg.Token == nil {
		return ""
	}
	return " (with a token that is a scope like rabbitmq." + missing + ", where rabbitmq is the broker's resource_server_id)"
}

// amqpIdentity says as who AMQP is asked.
func (cfg Config) amqpIdentity() string {
	if cfg.External {
		return "the client certificate's user"
	}
	return cfg.identity()
}

// notAccepted says what a refusal of who the client is usually means.
func (cfg Config) notAccepted() string {
	switch {
	case cfg.Token != nil:
		if token, err := cfg.token(); err == nil {
			if expired := expiry(token); !expired.IsZero() && expired.Before(time.Now()) {
				return "the access token expired at " + expired.UTC().Format(time.RFC3339) +
					": give a new one (one in token_file is read again for every request, and can be renewed during a run)"
			}
		}
		return "RabbitMQ does not accept the access token: is it signed by an issuer that the broker's rabbitmq_auth_backend_oauth2 knows, and does its audience (aud) name the broker's resource_server_id?"
	case cfg.Username == "":
		return "requests to the management API are sent without authentication, for a server in front of it to add, and none was added: " +
			"RabbitMQ itself takes username and password or a token there, and no client certificate"
	}
	return fmt.Sprintf("RabbitMQ does not accept user %q with this password: check both (RabbitMQ says the same to a user without the management tag, "+
		"and to one that is limited to certain hosts, like \"guest\" to localhost)", cfg.Username)
}

// amqpNotAccepted says the same of AMQP; "" where the error is another one.
func (cfg Config) amqpNotAccepted(err error) string {
	var refusal *amqp091.Error
	switch {
	case errors.Is(err, amqp091.ErrSASL) && cfg.External:
		return "the broker does not offer EXTERNAL: enable its plugin rabbitmq_auth_mechanism_ssl, and name EXTERNAL in its auth_mechanisms"
	case !errors.As(err, &refusal) || refusal.Code != amqp091.AccessRefused:
		return ""
	case cfg.External:
		return "the broker has no user of the name that it reads from the client certificate: its ssl_cert_login_from says from where"
	case cfg.Token != nil:
		return cfg.notAccepted()
	}
	return ""
}

// expiry is when a token says it expires; zero where it does not say so in a way that can be read.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(text, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0)
}

// proxy is what decides which proxy a request takes.
func (cfg Config) proxy() func(*http.Request) (*url.URL, error) {
	if cfg.Proxy != nil {
		return http.ProxyURL(cfg.Proxy)
	}
	return http.ProxyFromEnvironment
}
