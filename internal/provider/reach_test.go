package provider

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/redeliver/terraform-provider-redeliver/internal/brokertest"
)

// shop is the smallest resource there is.
const shop = `
resource "redeliver_rabbitmq_exchange" "shop" {
  name = "shop"
  type = "topic"
}
`

func TestEndpointMayHaveAPathPrefixAndATrailingSlash(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "/ops/rabbit mq")
	b.run(resource.TestStep{
		Config: b.blockAt(p.URL+"/ops/rabbit%20mq/", b.broker.Username(), b.broker.Password(), "") + shop,
		Check:  b.there("exchanges/%s/shop"),
	})
}

func TestHeadersReachTheServer(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	p.answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("X-Proxy-Token") == "open sesame" && r.UserAgent() == "terraform-provider-redeliver/test" {
			return false
		}
		http.Error(w, "who are you?", http.StatusForbidden)
		return true
	})
	b.run(resource.TestStep{
		Config: b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), `headers = { "X-Proxy-Token" = "open sesame" }`) + shop,
		Check:  b.there("exchanges/%s/shop"),
	})
}

func TestAnotherEndpointIsUsedWhenOneIsDead(t *testing.T) {
	b := setup(t)
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	b.run(resource.TestStep{
		Config: strings.Replace(b.provider, "endpoints = [", fmt.Sprintf("endpoints = [%q, ", dead.URL), 1) + shop,
		Check:  b.there("exchanges/%s/shop"),
	})
}

func TestProviderIsConfiguredFromTheEnvironmentAlone(t *testing.T) {
	b := setup(t)
	b.runWith(map[string]string{
		"REDELIVER_RABBITMQ_ENDPOINTS": b.broker.ManagementURL(), "REDELIVER_RABBITMQ_USERNAME": b.broker.Username(),
		"REDELIVER_RABBITMQ_PASSWORD": b.broker.Password(), "REDELIVER_RABBITMQ_VHOST": b.vhost,
	}, resource.TestStep{Config: shop, Check: b.there("exchanges/%s/shop")})
}

func TestTLSWithAnOwnAuthorityAndAClientCertificate(t *testing.T) {
	b := setup(t)
	ca := newAuthority(t)
	p := newProxy(t, b.broker, "", func(s *httptest.Server) {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{ca.server()}, ClientCAs: ca.pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
	})
	cert, key := ca.pair("client")
	// One of the three is given as text, the others as files.
	b.run(resource.TestStep{
		Config: b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), fmt.Sprintf("ca_cert = %q\nclient_cert = %q\nclient_key = %q",
			file(t, "ca.pem", ca.pem), cert, file(t, "key.pem", key))) + shop,
		Check: b.there("exchanges/%s/shop"),
	})
}

// TestWhatIsWrongWithTheConnectionIsSaidOnce configures the provider for brokers that cannot work.
func TestWhatIsWrongWithTheConnectionIsSaidOnce(t *testing.T) {
	b := setup(t)
	_, userPassword := brokertest.User(t, b.broker, b.vhost, ".*", ".*", ".*", "management")
	untagged, untaggedPassword := brokertest.User(t, b.broker, b.vhost, ".*", ".*", ".*")
	working := map[string]string{
		"ENDPOINTS": b.broker.ManagementURL(), "USERNAME": b.broker.Username(), "PASSWORD": b.broker.Password(), "MAX_RETRIES": "0", "REQUEST_TIMEOUT": "5s",
	}
	html := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { notHere(w, r) }))
	t.Cleanup(html.Close)
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>please log in</html>")) }))
	t.Cleanup(login.Close)
	moved := httptest.NewServer(http.RedirectHandler("https://elsewhere.example/login", http.StatusFound))
	t.Cleanup(moved.Close)
	wall := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) }))
	t.Cleanup(wall.Close)
	for name, test := range map[string]struct {
		env       map[string]string
		attribute string
		says      string
	}{
		"nothing":                  {map[string]string{}, "", ""},
		"another password":         {map[string]string{"PASSWORD": "topsecret"}, "username", "does not accept user"},
		"a user without tag":       {map[string]string{"USERNAME": untagged, "PASSWORD": untaggedPassword}, "username", `the tag "management"`},
		"another user's password":  {map[string]string{"USERNAME": "nobody", "PASSWORD": userPassword}, "username", `does not accept user "nobody"`},
		"no user":                  {map[string]string{"USERNAME": "", "PASSWORD": ""}, "username", "no user is named"},
		"a proxy's 404":            {map[string]string{"ENDPOINTS": html.URL}, "endpoints", "check the endpoint and its path prefix"},
		"a wrong path prefix":      {map[string]string{"ENDPOINTS": b.broker.ManagementURL() + "/rabbit"}, "endpoints", "path prefix"},
		"the path of the API":      {map[string]string{"ENDPOINTS": b.broker.ManagementURL() + "/api"}, "endpoints", "path prefix"},
		"a login page":             {map[string]string{"ENDPOINTS": login.URL}, "endpoints", "a login page in between"},
		"a redirect":               {map[string]string{"ENDPOINTS": moved.URL}, "endpoints", "redirects are not followed"},
		"a proxy's 401":            {map[string]string{"ENDPOINTS": wall.URL}, "endpoints", "did not come from RabbitMQ"},
		"the AMQP port":            {map[string]string{"ENDPOINTS": strings.Replace(b.amqpEndpoint(), "amqp://", "http://", 1)}, "unreachable", "instead of the management port"},
		"TLS where there is none":  {map[string]string{"ENDPOINTS": strings.Replace(b.broker.ManagementURL(), "http://", "https://", 1)}, "unreachable", "does not speak TLS"},
		"a host that is not there": {map[string]string{"ENDPOINTS": "http://nowhere.invalid"}, "unreachable", "nowhere.invalid"},
		"a port where nobody is":   {map[string]string{"ENDPOINTS": "http://127.0.0.1:1"}, "unreachable", "is the management plugin enabled, and the port right?"},
	} {
		env := maps.Clone(working)
		maps.Copy(env, test.env)
		rt, diags := configuredFrom(t, env)
		attribute := test.attribute
		if attribute == "unreachable" {
			// A broker that is about to be started is no error before it is needed; then it is one for all resources.
			if diags.HasError() {
				t.Errorf("%s: %v", name, diags)
			}
			for range 3 {
				if _, ok := rt.reader(&diags); ok {
					t.Errorf("%s: a resource went on", name)
				}
			}
			attribute = "endpoints"
		}
		if attribute == "" {
			if len(diags) > 0 {
				t.Errorf("%s: %v", name, diags)
			}
			continue
		}
		if len(diags) != 1 {
			t.Errorf("%s: want one diagnostic, got %v", name, diags)
			continue
		}
		detail := diags[0].Detail()
		if !strings.Contains(detail, "rabbitmq."+attribute) || !strings.Contains(detail, test.says) || strings.Contains(detail, "topsecret") {
			t.Errorf("%s: %s", name, detail)
		}
		if at, ok := diags[0].(diag.DiagnosticWithPath); ok && !at.Path().Equal(path.Root("rabbitmq").AtName(attribute)) {
			t.Errorf("%s: at %s", name, at.Path())
		}
	}
}

func TestWhatIsWrongWithTLSIsSaid(t *testing.T) {
	b := setup(t)
	ca, stranger := newAuthority(t), newAuthority(t)
	serve := func(auth tls.ClientAuthType) string {
		return newProxy(t, b.broker, "", func(s *httptest.Server) {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{ca.server()}, ClientCAs: ca.pool(), ClientAuth: auth, MinVersion: tls.VersionTLS12}
			s.Config.ErrorLog = quietLog()
		}).URL
	}
	open, closed := serve(tls.NoClientCert), serve(tls.RequireAndVerifyClientCert)
	strangerCert, strangerKey := stranger.pair("client")
	_, _, expired, expiredKey := ca.issue("client", func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(1) })
	for name, test := range map[string]struct {
		env  map[string]string
		says string // "" works
	}{
		"an authority that is trusted":     {map[string]string{"ENDPOINTS": open, "CA_CERT": ca.pem}, ""},
		"any certificate":                  {map[string]string{"ENDPOINTS": open, "INSECURE": "true"}, ""},
		"an authority that is not trusted": {map[string]string{"ENDPOINTS": open}, "give its CA certificate"},
		"another authority":                {map[string]string{"ENDPOINTS": open, "CA_CERT": stranger.pem}, "give its CA certificate"},
		"no client certificate":            {map[string]string{"ENDPOINTS": closed, "CA_CERT": ca.pem}, "does it want a client certificate"},
		"a stranger's client certificate":  {map[string]string{"ENDPOINTS": closed, "CA_CERT": ca.pem, "CLIENT_CERT": strangerCert, "CLIENT_KEY": strangerKey}, "does it want a client certificate"},
		"an expired client certificate":    {map[string]string{"ENDPOINTS": closed, "CA_CERT": ca.pem, "CLIENT_CERT": expired, "CLIENT_KEY": expiredKey}, "does it want a client certificate"},
	} {
		test.env["USERNAME"], test.env["PASSWORD"], test.env["MAX_RETRIES"] = b.broker.Username(), b.broker.Password(), "0"
		rt, diags := configuredFrom(t, test.env)
		_, ok := rt.reader(&diags)
		switch {
		case test.says == "":
			if !ok || len(diags) > 0 {
				t.Errorf("%s: %v", name, diags)
			}
		case ok || len(diags) != 1 || !strings.Contains(diags[0].Detail(), test.says) || !strings.Contains(diags[0].Detail(), "rabbitmq.endpoints"):
			t.Errorf("%s: %v", name, diags)
		}
	}
}

func TestRequestsAreRetriedAsConfigured(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		http.Error(w, "starting", http.StatusServiceUnavailable)
	}))
	t.Cleanup(failing.Close)
	for retries, want := range map[string]int32{"0": 1, "2": 3} {
		requests.Store(0)
		rt, diags := configuredFrom(t, map[string]string{"ENDPOINTS": failing.URL, "USERNAME": "u", "PASSWORD": "p", "MAX_RETRIES": retries})
		if _, ok := rt.reader(&diags); ok || len(diags) != 1 || requests.Load() != want {
			t.Errorf("max_retries = %s: %d requests, want %d; %v", retries, requests.Load(), want, diags)
		}
	}
}

func TestRequestsTakeNoLongerThanConfigured(t *testing.T) {
	t.Parallel()
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hanging.Close)
	rt, diags := configuredFrom(t, map[string]string{
		"ENDPOINTS": hanging.URL, "USERNAME": "u", "PASSWORD": "p", "MAX_RETRIES": "0", "REQUEST_TIMEOUT": "100ms",
	})
	if _, ok := rt.reader(&diags); ok || len(diags) != 1 || !strings.Contains(diags[0].Detail(), "no answer within 100ms") {
		t.Errorf("%v", diags)
	}
}

func TestABrokerThatIsGoneIsOneErrorForAllResources(t *testing.T) {
	b := setup(t)
	p := newProxy(t, b.broker, "")
	config := func(lose bool) string {
		return b.blockAt(p.URL, b.broker.Username(), b.broker.Password(), "max_retries = 0") + fmt.Sprintf(`
resource "redeliver_rabbitmq_dead_letter_queue" "queue" {
  for_each         = toset(["a", "b", "c"])
  topic            = each.key
  convention       = "shove"
  delete_non_empty = %t
}
`, lose)
	}
	c := b.commandLine(config(false))
	c.apply()
	p.Close()
	out := c.planFails()
	expect(t, out, "RabbitMQ does not answer", "nothing listens there", "rabbitmq.endpoints", "REDELIVER_RABBITMQ_ENDPOINTS")
	if n := strings.Count(out, "Error:"); n != 1 {
		t.Errorf("%d errors, want one:\n%s", n, out)
	}
	if got := len(c.state()); got != 3 {
		t.Errorf("%d resources are left in state, want 3", got)
	}
	// What a plan would like to know about messages it does without.
	out = c.plan("-refresh=false", "-destroy")
	expect(t, out, "Plan: 0 to add, 0 to change, 3 to destroy")
}

func TestNothingIsConfigured(t *testing.T) {
	b := setup(t)
	c := b.commandLine(`
provider "redeliver" {}
output "names" { value = provider::redeliver::build_names("orders", "redeliver", {}).work_queue }
`)
	expect(t, c.apply(), `names = "orders"`)
	c.configure(`provider "redeliver" {}` + shop + orders(""))
	out := c.planFails()
	expect(t, out, "No RabbitMQ is configured", "REDELIVER_RABBITMQ_ENDPOINTS")
	if n := strings.Count(out, "Error:"); n != 1 {
		t.Errorf("%d errors, want one:\n%s", n, out)
	}
}

func TestEndpointThatAnotherResourceMakes(t *testing.T) {
	b := setup(t)
	config := func(version string) string {
		return fmt.Sprintf(`
resource "terraform_data" "broker" {
  triggers_replace = %q
  input            = { endpoint = %q, vhost = %q }
}
provider "redeliver" {
  rabbitmq = {
    endpoints = [terraform_data.broker.output.endpoint]
    username  = %q
    password  = %q
    vhost     = terraform_data.broker.output.vhost
  }
}
`, version, b.broker.ManagementURL(), b.vhost, b.broker.Username(), b.broker.Password()) + losing(orders(`bindings = [{ exchange = "amq.topic", routing_key = "order.*" }]`)) + `
resource "redeliver_rabbitmq_binding" "orders" {
  source      = "amq.fanout"
  destination = redeliver_rabbitmq_topic.orders.name
}
` + shop
	}
	c := b.commandLine(config("1"))
	expect(t, c.plan(), "id = (known after apply)", "Plan: 7 to add, 0 to change, 0 to destroy")
	c.apply()
	b.mustExist("queues/%s/orders", "queues/%s/orders-hold-120s", "exchanges/%s/shop")

	// The broker's endpoint is not known again: everything stays as it is, and the plan says what it did not do.
	c.configure(config("2"))
	out := c.plan()
	expect(t, out, "Plan: 1 to add, 0 to change, 1 to destroy")
	expect(t, out, "Warning: Not compared with the broker", "trusts the state as it was last seen")
	expectNot(t, out, "redeliver_rabbitmq_topic.orders will", "redeliver_rabbitmq_topic.orders must")
	expect(t, c.apply(), "1 added, 0 changed, 1 destroyed")
	expect(t, c.plan(), "No changes")
}

func TestAQueueWhoseNameIsNotKnownYetIsReplaced(t *testing.T) {
	b := setup(t)
	config := func(name string) string {
		return b.provider + fmt.Sprintf(`
resource "terraform_data" "name" {
  triggers_replace = %q
  input            = %q
}
`, name, name) + losing(`
resource "redeliver_rabbitmq_dead_letter_queue" "orders" { topic = terraform_data.name.output }
resource "redeliver_rabbitmq_hold_ladder" "orders" {
  topic  = terraform_data.name.output
  delays = ["5s"]
}
resource "redeliver_rabbitmq_topic" "orders" {
  name              = terraform_data.name.output
  dead_letter_queue = redeliver_rabbitmq_dead_letter_queue.orders.name
  hold_queues       = redeliver_rabbitmq_hold_ladder.orders.queues
}
`)
	}
	c := b.commandLine(config("orders"))
	c.apply()
	c.configure(config("invoices"))
	expect(t, c.apply(), "4 added, 0 changed, 4 destroyed")
	b.mustExist("queues/%s/invoices", "queues/%s/invoices-dlq", "queues/%s/invoices-hold-5s")
	b.mustBeGone("queues/%s/orders", "queues/%s/orders-dlq", "queues/%s/orders-hold-5s", "exchanges/%s/orders-retry")
	expect(t, c.plan(), "No changes")
}

func TestArgumentThatIsNotKnownYetReplacesTheQueue(t *testing.T) {
	b := setup(t)
	config := func(length int) string {
		return b.provider + fmt.Sprintf(`
resource "terraform_data" "length" {
  triggers_replace = %[1]d
  input            = %[1]d
}
`, length) + losing(shovePair(`extra_arguments = { "x-max-length" = terraform_data.length.output }`))
	}
	c := b.commandLine(config(100))
	c.apply()
	c.configure(config(200))
	// An apply does what its plan said, so that the plan has to say the most that may be needed.
	expect(t, c.apply(), "redeliver_rabbitmq_topic.orders must be replaced", "} -> (known after apply) # forces replacement", "x-max-length = 100 -> (known after apply)", "2 added, 0 changed, 2 destroyed")
	if got := b.argumentsOf("orders")["x-max-length"]; got != 200.0 {
		t.Errorf("x-max-length is %v", got)
	}
	expect(t, c.plan(), "No changes")
}
