package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/redeliver/terraform-provider-redeliver/internal/amqp"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// envAMQPURL names the AMQP URL that applications have, with credentials in it.
const envAMQPURL = "AMQP_URL"

// connection is what flags say of the broker. What they leave out comes from the environment, by the variables that the
// provider reads.
type connection struct {
	management, amqp        []string
	username, passwordFile  string
	tokenFile               string
	caCert, clientCert, key string
	insecure                bool

	region, endpoint, profile string // of Amazon SQS

	typed *string // the password, where it was asked for
}

// connects adds the flags of a command that talks to a manifest's broker.
func (a *app) connects(cmd *cobra.Command) *cobra.Command {
	a.reachesSQS(cmd)
	return a.connectsRabbitMQ(cmd)
}

// connectsRabbitMQ adds those of a command that talks to RabbitMQ.
func (a *app) connectsRabbitMQ(cmd *cobra.Command) *cobra.Command {
	c, f := &a.conn, cmd.Flags()
	env := func(text, attribute string) string {
		return text + " (or " + rabbitmqadmin.EnvName(attribute) + ")"
	}
	f.StringSliceVar(&c.management, "management-url", nil, env("URLs of RabbitMQ's management API, such as https://host:15671", "endpoints"))
	f.StringSliceVar(&c.amqp, "amqp-url", nil, env("AMQP addresses of the same broker, such as amqps://host:5671", "amqp_endpoints")+"; "+envAMQPURL+" may have credentials too")
	f.StringVar(&c.username, "username", "", env("the user", "username")+"; the password comes from "+rabbitmqadmin.EnvName("password")+", --password-file or a prompt")
	f.StringVar(&c.passwordFile, "password-file", "", "a file with the password")
	f.StringVar(&c.tokenFile, "token-file", "", env("a file with an OAuth 2 access token, instead of user and password", "token_file")+"; it is read again for every request")
	f.StringVar(&c.caCert, "ca-cert", "", env("a file of certificates that may have signed the broker's", "ca_cert"))
	f.StringVar(&c.clientCert, "client-cert", "", env("a file with a client certificate", "client_cert"))
	f.StringVar(&c.key, "client-key", "", env("a file with its key", "client_key"))
	f.BoolVar(&c.insecure, "insecure", false, env("accept any certificate", "insecure"))
	return cmd
}

// reachesSQS adds the flags of Amazon SQS. Credentials come from where the AWS SDK looks for them.
func (a *app) reachesSQS(cmd *cobra.Command) {
	c, f := &a.conn, cmd.Flags()
	f.StringVar(&c.region, "region", "", "the region of Amazon SQS (default: the manifest's); credentials come from where the AWS SDK looks for them")
	f.StringVar(&c.profile, "profile", "", "a profile of the AWS configuration files (or AWS_PROFILE)")
	f.StringVar(&c.endpoint, "endpoint", "", "the address of Amazon SQS, where it is an emulator or a VPC endpoint (or AWS_ENDPOINT_URL_SQS)")
}

func fromEnv(attribute string) string { return os.Getenv(rabbitmqadmin.EnvName(attribute)) }

// said is a flag's text or, where it says nothing, the environment's.
func said(flag, attribute string) string { return cmp.Or(flag, fromEnv(attribute)) }

// addresses are those that a flag has or, where it has none, the environment. A flag's have one of the schemes.
func addresses(flag []string, name, attribute string, schemes ...string) ([]string, error) {
	for _, text := range flag {
		u, err := url.Parse(text)
		switch {
		case strings.Contains(text, "@"): // which no other part of an address has
			return nil, usagef("--%s has credentials in it: what is on a command line, every user of the machine can see, and the shell keeps it. "+
				"Put the user into --username, and the password into %s, --password-file, or type it when asked", name, rabbitmqadmin.EnvName("password"))
		case err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme):
			return nil, usagef("--%s %q is no address that begins with %s://: write %s://HOST:PORT", name, text, strings.Join(schemes, ":// or "), schemes[0])
		}
	}
	if len(flag) > 0 {
		return flag, nil
	}
	var out []string
	for item := range strings.SplitSeq(fromEnv(attribute), ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out, nil
}

// config is how to reach the broker and as whom. amqpURL is the whole URL of an application, where that says where AMQP is.
func (a *app) config(ctx context.Context) (cfg rabbitmqadmin.Config, amqpURL string, err error) {
	c := &a.conn
	if cfg.Endpoints, err = addresses(c.management, "management-url", "endpoints", "http", "https"); err != nil {
		return cfg, "", err
	}
	if cfg.AMQPEndpoints, err = addresses(c.amqp, "amqp-url", "amqp_endpoints", "amqp", "amqps"); err != nil {
		return cfg, "", err
	}
	var user *url.Userinfo
	if text := os.Getenv(envAMQPURL); text != "" {
		u, err := url.Parse(text)
		if err != nil {
			return cfg, "", fmt.Errorf("%s is no URL such as amqp://user:password@host:5672; special characters in it are percent-encoded", envAMQPURL)
		}
		user = u.User
		if len(cfg.AMQPEndpoints) == 0 {
			amqpURL = text
		}
	}
	if cfg.TLS, err = c.tls(); err != nil {
		return cfg, "", err
	}
	if err := c.rest(&cfg); err != nil {
		return cfg, "", err
	}
	if err := a.identify(ctx, &cfg, user); err != nil {
		return cfg, "", err
	}
	cfg.UserAgent = "redeliver/" + a.version
	return cfg, amqpURL, nil
}

// identify says as whom: by a token, by a user and a password, or as the application whose AMQP URL is there.
func (a *app) identify(ctx context.Context, cfg *rabbitmqadmin.Config, user *url.Userinfo) error {
	c := &a.conn
	switch file, token := said(c.tokenFile, "token_file"), fromEnv("token"); {
	case c.username != "": // what the command line says comes first
	case file != "":
		cfg.Token = func() (string, error) { return secretFile("token", file) }
		return nil
	case token != "":
		cfg.Token = func() (string, error) { return token, nil }
		return nil
	}
	cfg.Username = said(c.username, "username")
	if cfg.Username == "" && user != nil {
		cfg.Username = user.Username()
		cfg.Password, _ = user.Password()
		return nil
	}
	if cfg.Username == "" {
		return nil
	}
	var err error
	cfg.Password, err = a.password(ctx, cfg.Username, cfg.External)
	return err
}

// password comes from a file, from the environment or from a prompt, which asks once.
func (a *app) password(ctx context.Context, user string, external bool) (string, error) {
	c := &a.conn
	switch {
	case c.typed != nil:
		return *c.typed, nil
	case c.passwordFile != "":
		return secretFile("password", c.passwordFile)
	}
	if text, set := os.LookupEnv(rabbitmqadmin.EnvName("password")); set {
		return text, nil
	}
	if external {
		return "", nil
	}
	if !isTerminal(a.std.In) {
		return "", fmt.Errorf("there is no password for user %q: set %s, or name a file with --password-file", user, rabbitmqadmin.EnvName("password"))
	}
	terminal := int(a.std.In.Fd())
	before, err := term.MakeRaw(terminal) // nothing that is typed is shown from before it is asked for
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	typed, err := answered(ctx, func() (string, error) {
		prompt := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{a.std.In, a.err}, "")
		return prompt.ReadPassword("Password of user " + shown(user) + ": ")
	})
	_ = term.Restore(terminal, before) // a terminal that is gone needs nothing
	if errors.Is(err, io.EOF) {        // which is what Ctrl-C is while a terminal is asked so
		err = ErrInterrupted
	}
	if err != nil {
		fmt.Fprintln(a.err)
		return "", fmt.Errorf("reading the password: %w", err)
	}
	c.typed = &typed
	return typed, nil
}

// secretFile reads a secret, whose file is not repeated: it may be a secret that belongs elsewhere.
func secretFile(what, name string) (string, error) {
	content, err := os.ReadFile(name)
	var failed *os.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		return "", fmt.Errorf("reading the file with the %s: %w", what, err)
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

// rest is what only the environment says.
func (c *connection) rest(cfg *rabbitmqadmin.Config) error {
	wrong := func(attribute, why string) error {
		return fmt.Errorf("%s: %s", rabbitmqadmin.EnvName(attribute), why)
	}
	switch mechanism := fromEnv("auth_mechanism"); mechanism {
	case "", "PLAIN":
	case "EXTERNAL":
		cfg.External = true
	default:
		return wrong("auth_mechanism", fmt.Sprintf("%q is not one of PLAIN, EXTERNAL", mechanism))
	}
	if text := fromEnv("headers"); text != "" {
		var fields map[string]string
		if json.Unmarshal([]byte(text), &fields) != nil {
			return wrong("headers", `it is not a JSON object of strings, such as {"X-Proxy-Token":"..."}`)
		}
		cfg.Headers = http.Header{}
		for name, value := range fields {
			cfg.Headers.Set(name, value)
		}
	}
	if text := fromEnv("http_proxy"); text != "" {
		var err error
		if cfg.Proxy, err = url.Parse(text); err != nil {
			return wrong("http_proxy", "it is not a URL like http://HOST:PORT")
		}
	}
	if text := fromEnv("request_timeout"); text != "" {
		var err error
		if cfg.RequestTimeout, err = topology.ParseDuration(text); err != nil {
			return wrong("request_timeout", err.Error())
		}
	}
	if text := fromEnv("max_retries"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return wrong("max_retries", fmt.Sprintf("%q is not a number from 0 on", text))
		}
		if cfg.MaxRetries = n; n == 0 {
			cfg.MaxRetries = -1 // the client's zero value is its default
		}
	}
	return nil
}

// tls is what TLS is made of. The environment may have PEM text in the place of a file.
func (c *connection) tls() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	cfg.InsecureSkipVerify = c.insecure //nolint:gosec // asked for by name
	if text := fromEnv("insecure"); text != "" && !c.insecure {
		insecure, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is neither true nor false", rabbitmqadmin.EnvName("insecure"), text)
		}
		cfg.InsecureSkipVerify = insecure
	}
	ca, err := pem(c.caCert, "ca_cert")
	if err != nil {
		return nil, err
	}
	if ca != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(ca)) {
			return nil, errors.New("the CA certificates: there is none in PEM that can be read")
		}
	}
	cert, err := pem(c.clientCert, "client_cert")
	if err != nil {
		return nil, err
	}
	key, err := pem(c.key, "client_key")
	if err != nil {
		return nil, err
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("a client certificate goes with its key: set both --client-cert and --client-key, or neither")
	}
	if cert != "" {
		pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
		if err != nil {
			return nil, fmt.Errorf("the client certificate and its key are no pair: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

func pem(flag, attribute string) (string, error) {
	text := said(flag, attribute)
	if text == "" || strings.Contains(text, "-----BEGIN") {
		return text, nil
	}
	return secretFile(strings.ReplaceAll(attribute, "_", " "), text)
}

// amqpBroker is how to reach the broker over AMQP.
func amqpBroker(cfg rabbitmqadmin.Config, amqpURL, vhost string) (*amqp.Broker, error) {
	made := amqp.Config{URL: amqpURL, VHost: vhost, Name: "redeliver command"}
	if cfg.Username != "" || cfg.Token != nil || cfg.External {
		made.SASL = cfg.SASL
	}
	if amqpURL == "" {
		if len(cfg.AMQPEndpoints) == 0 {
			return nil, fmt.Errorf("messages are read and moved over AMQP, and no address is known: set --amqp-url, %s or %s", rabbitmqadmin.EnvName("amqp_endpoints"), envAMQPURL)
		}
		if made.SASL == nil {
			return nil, fmt.Errorf("no user is named: set --username, %s, a token, or %s with credentials in it", rabbitmqadmin.EnvName("username"), envAMQPURL)
		}
		made.URL = cfg.AMQPEndpoints[0]
		for _, other := range cfg.AMQPEndpoints[1:] {
			u, err := url.Parse(other)
			if err != nil || u.Host == "" {
				return nil, errors.New("an AMQP address is no URL such as amqp://host:5672")
			}
			made.Addresses = append(made.Addresses, u.Host)
		}
	}
	// What an application's own URL says of certificates (its parameters) is left to it.
	if uri, err := amqp091.ParseURI(made.URL); err == nil && uri.Scheme == "amqps" && uri.CACertFile == "" && uri.CertFile == "" {
		made.TLS = cfg.TLS
	}
	broker, err := amqp.NewBroker(made)
	if err != nil {
		return nil, fmt.Errorf("the AMQP address: %w", err)
	}
	return broker, nil
}
