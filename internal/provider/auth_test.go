package provider

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
)

// TestIdentityComesFromOnePlace: what the configuration says of who the provider is hides what the environment says of it.
func TestIdentityComesFromOnePlace(t *testing.T) {
	t.Parallel()
	text := types.StringValue
	tokenFile := file(t, "token", "from-a-file\n")
	everything := map[string]string{"USERNAME": "env", "PASSWORD": "env", "TOKEN": "env"}
	for name, test := range map[string]struct {
		model       rabbitMQModel
		env         map[string]string
		user, token string
		says        string // the error
	}{
		"user, environment":                    {env: map[string]string{"USERNAME": "u", "PASSWORD": "p"}, user: "u:p"},
		"token, environment":                   {env: map[string]string{"TOKEN": "t"}, token: "t"},
		"token file, environment":              {env: map[string]string{"TOKEN_FILE": tokenFile}, token: "from-a-file\n"},
		"user over the environment":            {model: rabbitMQModel{Username: text("u"), Password: text("p")}, env: everything, user: "u:p"},
		"user, and the environment's password": {model: rabbitMQModel{Username: text("u")}, env: everything, user: "u:env"},
		"token over the environment":           {model: rabbitMQModel{Token: text("t")}, env: everything, token: "t"},
		"token file over the environment":      {model: rabbitMQModel{TokenFile: text(tokenFile)}, env: everything, token: "from-a-file\n"},
		"user and token":                       {model: rabbitMQModel{Username: text("u"), Password: text("p"), Token: text("topsecret")}, says: "rabbitmq.token (or the environment variable REDELIVER_RABBITMQ_TOKEN): a user or a password is set too"},
		"password and token file":              {model: rabbitMQModel{Password: text("topsecret"), TokenFile: text(tokenFile)}, says: "rabbitmq.token_file (or"},
		"token and token file":                 {model: rabbitMQModel{Token: text("topsecret"), TokenFile: text(tokenFile)}, says: "token is set too"},
		"user and token, environment":          {env: everything, says: "a user or a password is set too"},
	} {
		cfg, diags, _ := configOf(t, test.model, test.env)
		if test.says != "" {
			if len(diags) != 1 || !strings.Contains(diags[0].Detail(), test.says) || strings.Contains(diags[0].Detail(), "topsecret") {
				t.Errorf("%s: %v", name, diags)
			}
			continue
		}
		user, token := "", ""
		if cfg.Username != "" {
			user = cfg.Username + ":" + cfg.Password
		}
		if cfg.Token != nil {
			token, _ = cfg.Token()
		}
		if diags.HasError() || user != test.user || token != test.token {
			t.Errorf("%s: user %q, token %q, %v", name, user, token, diags)
		}
	}
}

func TestAuthenticationThatCannotWorkNamesTheAttribute(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.pair("client")
	with := func(more map[string]string) map[string]string {
		env := map[string]string{"ENDPOINTS": "http://127.0.0.1:1", "MAX_RETRIES": "0"}
		for name, value := range more {
			env[name] = value
		}
		return env
	}
	for name, test := range map[string]struct {
		env       map[string]string
		attribute string
		says      string
	}{
		"nobody":                         {with(nil), "username", "set username and password, or token, or token_file"},
		"another mechanism":              {with(map[string]string{"AUTH_MECHANISM": "external"}), "auth_mechanism", `"external" is not one of PLAIN, EXTERNAL`},
		"EXTERNAL without a certificate": {with(map[string]string{"AUTH_MECHANISM": "EXTERNAL"}), "auth_mechanism", "by a client certificate, and none is given"},
		"EXTERNAL without TLS": {
			with(map[string]string{"AUTH_MECHANISM": "EXTERNAL", "CLIENT_CERT": cert, "CLIENT_KEY": key, "AMQP_ENDPOINTS": "amqp://127.0.0.1"}),
			"auth_mechanism", "it has to begin with amqps://",
		},
		"a token file that is not there": {with(map[string]string{"TOKEN_FILE": "/nowhere/topsecret"}), "token_file", "names: no such file"},
		"a token file with a text":       {with(map[string]string{"TOKEN_FILE": file(t, "token", "topsecret is no token")}), "token_file", "it is not one token"},
		"an empty token file":            {with(map[string]string{"TOKEN_FILE": file(t, "token", "\n")}), "token_file", "it is empty"},
		"a proxy that is no URL":         {with(map[string]string{"USERNAME": "u", "HTTP_PROXY": "http://user:top%secret@host"}), "http_proxy", "percent-encoded"},
		"a proxy without a scheme":       {with(map[string]string{"USERNAME": "u", "HTTP_PROXY": "user:topsecret@host:3128"}), "http_proxy", "http://HOST:PORT"},
	} {
		_, diags := configuredFrom(t, test.env)
		if len(diags) != 1 || !strings.Contains(diags[0].Detail(), "rabbitmq."+test.attribute+" ") || !strings.Contains(diags[0].Detail(), test.says) ||
			strings.Contains(diags[0].Detail(), "topsecret") {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

// TestTokenAuthenticatesAnApply is the whole way with a real issuer: an apply by a token in a file, a plan after it expired.
func TestTokenAuthenticatesAnApply(t *testing.T) {
	if os.Getenv("TF_ACC") == "" {
		t.Skip("no TF_ACC: run make test")
	}
	t.Parallel()
	issuer := brokertest.NewIssuer(t)
	broker := brokertest.Dedicated(t, issuer.Options())
	b := &bundle{t: t, broker: broker, vhost: brokertest.VHost(t, broker)}
	// The third part is the routing key, which a binding to a topic exchange is asked about.
	scopes := []string{"tag:management", "configure:*/*", "write:*/*", "read:*/*/*"}
	name := file(t, "token", issuer.Token("terraform", time.Now().Add(time.Hour), scopes...))
	c := b.commandLine(fmt.Sprintf(`
provider "redeliver" {
  rabbitmq = {
    endpoints      = [%q]
    amqp_endpoints = [%q]
    token_file     = %q
    vhost          = %q
  }
}
`, broker.ManagementURL(), b.amqpEndpoint(), name, b.vhost) + orders("bindings = [{ exchange = \"amq.topic\", routing_key = \"order.*\" }]"))
	c.apply()
	b.mustExist("queues/%s/orders", "queues/%s/orders-dlq")
	expect(t, c.plan(), "No changes")

	write := func(token string) {
		if err := os.WriteFile(name, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	valid, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	write(issuer.Token("terraform", time.Now().Add(-time.Minute), scopes...))
	out := c.planFails()
	expect(t, out, "Invalid RabbitMQ configuration", "rabbitmq.token_file", "the access token expired at")
	write(string(valid))
	c.apply("-destroy")
	b.mustBeGone("queues/%s/orders", "queues/%s/orders-dlq")
}

// TestAServerInFrontKnowsTheCertificate: nothing but a client certificate is configured, and an ingress that knows it
// adds what authenticates its user.
func TestAServerInFrontKnowsTheCertificate(t *testing.T) {
	b := setup(t)
	ca := newAuthority(t)
	p := newProxy(t, b.broker, "", func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{ca.server()}, ClientCAs: ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	})
	p.answer(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.TLS.PeerCertificates[0].Subject.CommonName == "terraform" && r.Header.Get("Authorization") == "" {
			r.SetBasicAuth(b.broker.Username(), b.broker.Password())
		}
		return false
	})
	config := func(name string) string {
		cert, key := ca.pair(name)
		return fmt.Sprintf(`
provider "redeliver" {
  rabbitmq = {
    endpoints      = [%q]
    auth_mechanism = "EXTERNAL"
    ca_cert        = %q
    client_cert    = %q
    client_key     = %q
    vhost          = %q
  }
}
`, p.URL, ca.pem, cert, key, b.vhost) + shop
	}
	b.run(
		resource.TestStep{Config: config("terraform"), Check: b.there("exchanges/%s/shop")},
		resource.TestStep{Config: config("somebody"), ExpectError: regexp.MustCompile(`(?s)Invalid RabbitMQ configuration.*no\s+client\s+certificate`)},
		resource.TestStep{Config: config("terraform")},
	)
}

// TestSecretsAreNowhere runs everything that writes something, with every secret that there can be, and looks for them.
func TestSecretsAreNowhere(t *testing.T) {
	const (
		token  = "t0p-secret-access-t0ken"
		header = "t0p-secret-header"
		proxy  = "t0p-secret-proxy"
	)
	for name, secret := range map[string][]string{"password": {"USERNAME", "PASSWORD"}, "token": {"TOKEN"}} {
		for _, from := range []string{"environment", "configuration"} {
			t.Run(name+" from the "+from, func(t *testing.T) {
				b := setup(t)
				cert, key := newAuthority(t).pair("client")
				// What knows the token, and the proxy in front of that, which wants a password.
				front := newProxy(t, b.broker, "")
				front.answer(func(_ http.ResponseWriter, r *http.Request) bool {
					if r.Header.Get("Authorization") == "Bearer "+token {
						r.SetBasicAuth(b.broker.Username(), b.broker.Password())
					}
					return false
				})
				forward := newForwardProxy(t, front.Listener.Addr().String(), "user", proxy)
				values := map[string]string{
					"ENDPOINTS": "http://rabbit.invalid", "VHOST": b.vhost, "USERNAME": b.broker.Username(), "PASSWORD": b.broker.Password(), "TOKEN": token,
					"CLIENT_CERT": cert, "CLIENT_KEY": key, "HEADERS": `{"X-Proxy-Token":"` + header + `"}`, "HTTP_PROXY": forward.url("user", proxy),
				}
				used := append([]string{"ENDPOINTS", "VHOST", "CLIENT_CERT", "CLIENT_KEY", "HEADERS", "HTTP_PROXY"}, secret...)
				if name == "password" { // the token is one that only the ingress knows
					values["AMQP_ENDPOINTS"] = b.amqpEndpoint()
					used = append(used, "AMQP_ENDPOINTS")
				}
				c := b.commandLine(shop)
				log := filepath.Join(c.dir, "log")
				c.env = append(c.env, "TF_LOG=TRACE", "TF_LOG_PATH="+log)
				config := "provider \"redeliver\" {}\n"
				if from == "environment" {
					for _, variable := range used {
						c.env = append(c.env, rabbitmqadmin.EnvName(variable)+"="+values[variable])
					}
				} else {
					config = "provider \"redeliver\" {\n  rabbitmq = {\n"
					for _, variable := range used {
						c.env = append(c.env, "TF_VAR_"+strings.ToLower(variable)+"="+values[variable])
						value := "var." + strings.ToLower(variable)
						switch variable {
						case "ENDPOINTS", "AMQP_ENDPOINTS":
							value = "[" + value + "]"
						case "HEADERS":
							value = "jsondecode(" + value + ")"
						}
						config += "    " + strings.ToLower(variable) + " = " + value + "\n"
					}
					config += "  }\n}\n"
					for _, variable := range used {
						config += fmt.Sprintf("variable %q { type = string }\n", strings.ToLower(variable))
					}
				}
				c.configure(config + losing(`resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = "orders" }`))
				out := c.apply()
				out += c.plan("-out=plan")
				if from == "environment" { // a saved plan has the values of variables in it
					out += c.must("show", "-json", "plan")
				}
				out += c.must("show", "-json")
				out += c.apply("-destroy")
				for _, name := range []string{log, filepath.Join(c.dir, "terraform.tfstate.backup")} {
					content, err := os.ReadFile(name)
					if err != nil {
						t.Fatal(err)
					}
					out += string(content)
				}
				if err := contains(out, "RabbitMQ answered", `"orders-dlq"`); err != nil || forward.requests.Load() == 0 {
					t.Errorf("%d requests through the proxy; the log and the state are not what this test thinks they are", forward.requests.Load())
				}
				for _, secret := range []string{b.broker.Password(), token, header, proxy, strings.Split(key, "\n")[1]} {
					if at := strings.Index(out, secret); at >= 0 {
						t.Errorf("a secret is in ...%q", out[max(0, at-200):min(len(out), at+50)])
					}
				}
			})
		}
	}
}
