package amqp

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/rabbitmq/amqp091-go"
)

// secure speaks TLS on a connection to a node.
func (b *Broker) secure(ctx context.Context, conn net.Conn, uri amqp091.URI) (net.Conn, error) {
	cfg, err := b.tlsConfig(uri)
	if err != nil {
		return nil, err
	}
	secured := tls.Client(conn, cfg)
	return secured, secured.HandshakeContext(ctx)
}

// tlsConfig is the TLS configuration for a node: Config.TLS, or what the
// parameters of its URL say, which are those of amqp091-go. Files are read
// each time, so that a connection that is made again uses renewed ones.
func (b *Broker) tlsConfig(uri amqp091.URI) (*tls.Config, error) {
	if b.cfg.TLS != nil {
		cfg := b.cfg.TLS.Clone()
		if cfg.ServerName == "" {
			cfg.ServerName = uri.Host
		}
		return cfg, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cmp.Or(uri.ServerName, uri.Host)}
	if uri.CACertFile != "" {
		pem, err := os.ReadFile(uri.CACertFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CA certificates (cacertfile): %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the file of CA certificates (cacertfile) has none")
		}
	}
	if uri.CertFile != "" && uri.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(uri.CertFile, uri.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate (certfile, keyfile): %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
