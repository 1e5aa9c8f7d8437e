package rabbitmqadmin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/rabbitmq/amqp091-go"
)

// connectionHint says what a failed connection usually means; "" where its own text says it all.
func connectionHint(err error) string {
	var (
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
		dns       *net.DNSError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &op) && op.Op == "proxyconnect":
		return "that is the HTTP proxy: http_proxy, or HTTP_PROXY and HTTPS_PROXY of the environment, name it, and NO_PROXY exempts hosts"
	case proxyWantsCredentials(err):
		return "the HTTP proxy wants credentials: put them into the URL in http_proxy"
	case errors.As(err, &authority):
		return "the server's certificate is signed by an authority that is not trusted here: give its CA certificate"
	case errors.As(err, &hostname):
		return "the certificate belongs to another host: use a name that is in it"
	case errors.As(err, &invalid):
		return "the server's certificate is not valid: is it expired, or the clock wrong?"
	case errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not speak TLS on this port: use http:// (management: 15672) or amqp://, or the port that does"
	case strings.Contains(err.Error(), "malformed HTTP response"):
		return "the server does not speak HTTP on this port: is it TLS (use https://), or the AMQP port 5672 instead of the management port 15672?"
	case errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls:"):
		return "the server broke off the TLS handshake: does it want a client certificate, or another one?"
	case errors.Is(err, amqp091.ErrClosed) || errors.Is(err, io.EOF):
		return "the server closed the connection: does it want TLS, or a client certificate, or is this another port?"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "there is no host of this name"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: is the management plugin enabled, and the port right?"
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return "is a firewall in between, or the broker overloaded? request_timeout can be raised"
	}
	return ""
}

// permanentFailure reports whether a connection fails the same way when it is tried again.
func permanentFailure(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
	)
	return errors.As(err, &verification) || errors.As(err, &record) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") ||
		strings.Contains(err.Error(), "malformed HTTP response") ||
		strings.Contains(err.Error(), "remote error: tls:") ||
		proxyWantsCredentials(err)
}

// proxyWantsCredentials tells what net/http makes of a proxy's 407 to CONNECT.
func proxyWantsCredentials(err error) bool {
	return err.Error() == http.StatusText(http.StatusProxyAuthRequired)
}
