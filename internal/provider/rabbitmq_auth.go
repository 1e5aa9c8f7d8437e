package provider

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
)

// mechanismExternal is the SASL mechanism that authenticates by the client certificate.
const mechanismExternal = "EXTERNAL"

// authMechanisms are those that can be chosen for AMQP; the first is the default.
var authMechanisms = []string{"PLAIN", mechanismExternal}

// identity reads as whom the provider works: a user with a password, or an access token. What the configuration says of
// it comes first as a whole: a password in the environment does not contradict a token in the configuration.
func (s *source) identity(model rabbitMQModel, cfg *rabbitmqadmin.Config) {
	user := !model.Username.IsNull() || !model.Password.IsNull()
	environment := !user && model.Token.IsNull() && model.TokenFile.IsNull()
	var token, file string
	if user || environment {
		cfg.Username, cfg.Password = s.text("username", model.Username), s.text("password", model.Password)
	}
	if environment || !model.Token.IsNull() {
		token = s.text("token", model.Token)
	}
	if environment || !model.TokenFile.IsNull() {
		file = s.text("token_file", model.TokenFile)
	}
	s.who = "username"
	switch {
	case token != "" && file != "":
		s.fail("token_file", "token is set too, and one of them is the access token: leave the other out")
	case token != "":
		s.who = "token"
		cfg.Token = func() (string, error) { return token, nil }
	case file != "":
		s.who = "token_file"
		cfg.Token = func() (string, error) { return readToken(file) }
	}
	if cfg.Token != nil && (cfg.Username != "" || cfg.Password != "") {
		s.fail(s.who, "a user or a password is set too, and either authenticates: leave username and password out, or this")
	}
}

// readToken reads an access token that somebody else may renew at any time.
func readToken(name string) (string, error) {
	content, err := os.ReadFile(name)
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err // the path may be a token that belongs elsewhere
	}
	if err != nil {
		return "", fmt.Errorf("reading the file that rabbitmq.token_file names: %w", err)
	}
	return string(content), nil
}

// external reports whether AMQP connections are authenticated by the client certificate.
func (s *source) external(value types.String) bool {
	mechanism := s.text("auth_mechanism", value)
	if mechanism != "" && !slices.Contains(authMechanisms, mechanism) {
		s.fail("auth_mechanism", fmt.Sprintf("%q is not one of %s", mechanism, strings.Join(authMechanisms, ", ")))
	}
	return mechanism == mechanismExternal
}

// proxy is the HTTP proxy; nil leaves it to the environment. It is never quoted: a password that breaks parsing would be
// in it.
func (s *source) proxy(value types.String) *url.URL {
	text := s.text("http_proxy", value)
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil {
		s.fail("http_proxy", "it is not a URL like http://HOST:PORT; special characters of a user and a password in it are percent-encoded")
		return nil
	}
	return u
}

// pem returns PEM text that is given as such or as a file's path.
func (s *source) pem(attribute string, value types.String) []byte {
	text := s.text(attribute, value)
	if text == "" || strings.Contains(text, "-----BEGIN") {
		return []byte(text)
	}
	if strings.ContainsAny(text, "\r\n") {
		s.fail(attribute, "it is neither PEM text (there is no -----BEGIN in it) nor a file's path")
		return nil
	}
	content, err := os.ReadFile(text)
	if err != nil {
		// The path is shown only where it can be one: a secret pasted without its PEM frame is not repeated.
		why := err.Error()
		var pathError *os.PathError
		if attribute == "client_key" && errors.As(err, &pathError) {
			why = pathError.Err.Error()
		}
		s.fail(attribute, "it is not PEM text and could not be read as a file: "+why)
		return nil
	}
	return content
}

func (s *source) tls(model rabbitMQModel) *tls.Config {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: s.flag("insecure", model.Insecure)} //nolint:gosec // asked for by name
	if ca := s.pem("ca_cert", model.CACert); len(ca) > 0 {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(ca) {
			s.fail("ca_cert", "there is no certificate in it that can be read; it must be PEM")
		}
	}
	cert, key := s.pem("client_cert", model.ClientCert), s.pem("client_key", model.ClientKey)
	if s.unknown {
		return cfg
	}
	switch {
	case len(cert) > 0 && len(key) > 0:
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			attribute := "client_cert"
			if hasCertificate(cert) {
				attribute = "client_key"
			}
			s.fail(attribute, "client_cert and client_key are no pair: "+err.Error())
			break
		}
		cfg.Certificates = []tls.Certificate{pair}
	case len(cert) > 0 && !s.diags.HasError():
		s.fail("client_key", "client_cert is set and its key is not; set both or neither")
	case len(key) > 0 && !s.diags.HasError():
		s.fail("client_cert", "client_key is set and its certificate is not; set both or neither")
	}
	return cfg
}

// hasCertificate reports whether PEM text starts with a certificate that can be read.
func hasCertificate(text []byte) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	_, err := x509.ParseCertificate(block.Bytes)
	return err == nil
}
