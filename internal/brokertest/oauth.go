package brokertest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"testing"
	"time"
)

const (
	// resourceServer is the name by which tokens address a node, and with which their scopes begin.
	resourceServer = "rabbitmq"
	issuerKey      = "issuer"
	issuerKeyFile  = "issuer.pem"
)

// Issuer signs OAuth 2 access tokens, which a node that was started with its options accepts.
type Issuer struct {
	t   testing.TB
	key *rsa.PrivateKey
}

// NewIssuer makes an issuer with a key of its own.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return &Issuer{t: t, key: key}
}

// Options are those of a node that accepts the issuer's tokens beside its own users.
func (i *Issuer) Options() Options {
	i.t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	if err != nil {
		i.t.Fatal(err)
	}
	return Options{
		Plugins: []string{"rabbitmq_auth_backend_oauth2"},
		Files:   map[string]string{issuerKeyFile: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))},
		Config: []string{
			"auth_backends.1 = internal",
			"auth_backends.2 = rabbit_auth_backend_oauth2",
			"auth_oauth2.resource_server_id = " + resourceServer,
			"auth_oauth2.default_key = " + issuerKey,
			"auth_oauth2.signing_keys." + issuerKey + " = {dir}/" + issuerKeyFile,
		},
	}
}

// Token signs a token for user with these scopes, such as "configure:*/*" or "tag:management".
func (i *Issuer) Token(user string, expires time.Time, scopes ...string) string {
	i.t.Helper()
	full := make([]string, len(scopes))
	for n, scope := range scopes {
		full[n] = resourceServer + "." + scope
	}
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			i.t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := part(map[string]any{"alg": "RS256", "typ": "JWT", "kid": issuerKey}) + "." +
		part(map[string]any{"sub": user, "aud": []string{resourceServer}, "exp": expires.Unix(), "scope": full})
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		i.t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}
