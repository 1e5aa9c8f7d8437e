package provider

import (
	"context"
	"crypto/tls"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
)

// configOf reads a configuration, with these environment variables.
func configOf(t *testing.T, model rabbitMQModel, env map[string]string) (rabbitmqadmin.Config, diag.Diagnostics, bool) {
	t.Helper()
	var diags diag.Diagnostics
	src := source{ctx: t.Context(), getenv: func(name string) string { return env[strings.TrimPrefix(name, rabbitmqadmin.EnvName(""))] }, diags: &diags}
	cfg := src.config(model)
	return cfg, diags, src.unknown
}

func stringList(values ...string) types.List {
	elements := make([]attr.Value, len(values))
	for i, value := range values {
		elements[i] = types.StringValue(value)
	}
	return types.ListValueMust(types.StringType, elements)
}

func TestConfigurationComesFromAttributesOrTheEnvironment(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.pair("client")
	configured := rabbitMQModel{
		Endpoints: stringList("https://a:1", "https://b:2/mq/"), AMQPEndpoints: stringList("amqps://a:3"),
		Username: types.StringValue("user"), Password: types.StringValue("pass,word"),
		CACert: types.StringValue(ca.pem), ClientCert: types.StringValue(cert), ClientKey: types.StringValue(key), Insecure: types.BoolValue(true),
		Headers:        types.MapValueMust(types.StringType, map[string]attr.Value{"X-Proxy": types.StringValue("secret")}),
		RequestTimeout: types.StringValue("1m30s"), MaxRetries: types.Int64Value(0),
	}
	environment := map[string]string{
		"ENDPOINTS": "https://a:1, https://b:2/mq/,", "AMQP_ENDPOINTS": "amqps://a:3", "USERNAME": "user", "PASSWORD": "pass,word",
		"CA_CERT": file(t, "ca.pem", ca.pem), "CLIENT_CERT": file(t, "cert.pem", cert), "CLIENT_KEY": file(t, "key.pem", key), "INSECURE": "true",
		"HEADERS": `{"x-proxy": "secret"}`, "REQUEST_TIMEOUT": "90s", "MAX_RETRIES": "0",
	}
	other := map[string]string{
		"ENDPOINTS": "https://c", "AMQP_ENDPOINTS": "amqp://c", "USERNAME": "other", "PASSWORD": "other", "CA_CERT": "/nowhere", "CLIENT_CERT": "/nowhere",
		"CLIENT_KEY": "/nowhere", "INSECURE": "false", "HEADERS": "{}", "REQUEST_TIMEOUT": "1s", "MAX_RETRIES": "9",
	}
	for name, test := range map[string]struct {
		model rabbitMQModel
		env   map[string]string
	}{
		"attributes":                      {configured, nil},
		"environment":                     {rabbitMQModel{}, environment},
		"attributes over the environment": {configured, other},
	} {
		cfg, diags, unknown := configOf(t, test.model, test.env)
		if diags.HasError() || unknown {
			t.Errorf("%s: unknown %v, %v", name, unknown, diags)
			continue
		}
		if !slices.Equal(cfg.Endpoints, []string{"https://a:1", "https://b:2/mq/"}) || !slices.Equal(cfg.AMQPEndpoints, []string{"amqps://a:3"}) {
			t.Errorf("%s: endpoints %q, AMQP endpoints %q", name, cfg.Endpoints, cfg.AMQPEndpoints)
		}
		if cfg.Username != "user" || cfg.Password != "pass,word" || cfg.Headers.Get("X-Proxy") != "secret" {
			t.Errorf("%s: user %q, password %q, headers %v", name, cfg.Username, cfg.Password, cfg.Headers)
		}
		if cfg.RequestTimeout != 90*time.Second || cfg.MaxRetries != -1 {
			t.Errorf("%s: request timeout %s, retries %d (-1 is none)", name, cfg.RequestTimeout, cfg.MaxRetries)
		}
		if !cfg.TLS.InsecureSkipVerify || !cfg.TLS.RootCAs.Equal(ca.pool()) || len(cfg.TLS.Certificates) != 1 || cfg.TLS.MinVersion != tls.VersionTLS12 {
			t.Errorf("%s: TLS %+v", name, cfg.TLS)
		}
	}
}

func TestConfigurationDefaults(t *testing.T) {
	t.Parallel()
	cfg, diags, unknown := configOf(t, rabbitMQModel{}, nil)
	if diags.HasError() || unknown {
		t.Fatal(diags)
	}
	if cfg.RequestTimeout != 30*time.Second || cfg.MaxRetries != 4 || cfg.TLS.RootCAs != nil || cfg.TLS.InsecureSkipVerify || len(cfg.Headers) != 0 {
		t.Errorf("%+v", cfg)
	}
}

func TestConfigurationThatIsWrongNamesTheAttribute(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.pair("client")
	_, otherKey := ca.pair("other")
	text := types.StringValue
	broken := "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"
	for name, test := range map[string]struct {
		model     rabbitMQModel
		env       map[string]string
		attribute string
		says      string
	}{
		"a CA that is no PEM":              {rabbitMQModel{CACert: text(broken)}, nil, "ca_cert", "no certificate in it that can be read"},
		"a CA file that is not there":      {rabbitMQModel{CACert: text("/nowhere/ca.pem")}, nil, "ca_cert", "/nowhere/ca.pem: no such file"},
		"a CA without its frame":           {rabbitMQModel{CACert: text("bm90\nYQ==")}, nil, "ca_cert", "neither PEM text (there is no -----BEGIN in it) nor a file's path"},
		"a CA file with something else":    {rabbitMQModel{CACert: text(file(t, "ca.pem", "hello"))}, nil, "ca_cert", "no certificate in it"},
		"a certificate without key":        {rabbitMQModel{ClientCert: text(cert)}, nil, "client_key", "client_cert is set and its key is not"},
		"a key without certificate":        {rabbitMQModel{ClientKey: text(key)}, nil, "client_cert", "client_key is set and its certificate is not"},
		"a certificate that is none":       {rabbitMQModel{ClientCert: text(broken), ClientKey: text(key)}, nil, "client_cert", "no pair"},
		"a key in the certificate's place": {rabbitMQModel{ClientCert: text(key), ClientKey: text(key)}, nil, "client_cert", "no pair"},
		"another certificate's key":        {rabbitMQModel{ClientCert: text(cert), ClientKey: text(otherKey)}, nil, "client_key", "does not match"},
		"a key that is none":               {rabbitMQModel{ClientCert: text(cert), ClientKey: text(broken)}, nil, "client_key", "no pair"},
		"a key file that is not there":     {rabbitMQModel{ClientCert: text(cert), ClientKey: text("topsecret")}, nil, "client_key", "could not be read as a file: no such file"},
		"a timeout that is none":           {rabbitMQModel{}, map[string]string{"REQUEST_TIMEOUT": "5"}, "request_timeout", `duration "5"`},
		"a timeout of zero":                {rabbitMQModel{RequestTimeout: text("0s")}, nil, "request_timeout", "it is zero"},
		"retries that are no number":       {rabbitMQModel{}, map[string]string{"MAX_RETRIES": "many"}, "max_retries", `"many" is not a number`},
		"retries below zero":               {rabbitMQModel{MaxRetries: types.Int64Value(-1)}, nil, "max_retries", "-1 is not between 0 and 100"},
		"insecure that is no boolean":      {rabbitMQModel{}, map[string]string{"INSECURE": "perhaps"}, "insecure", `"perhaps" is neither true nor false`},
		"headers that are no JSON":         {rabbitMQModel{}, map[string]string{"HEADERS": "X-Proxy: topsecret"}, "headers", "not a JSON object of strings"},
	} {
		_, diags, _ := configOf(t, test.model, test.env)
		if len(diags) != 1 {
			t.Errorf("%s: want one diagnostic, got %v", name, diags)
			continue
		}
		at, ok := diags[0].(diag.DiagnosticWithPath)
		detail := diags[0].Detail()
		if !ok || !at.Path().Equal(path.Root("rabbitmq").AtName(test.attribute)) || !strings.Contains(detail, "rabbitmq."+test.attribute) ||
			!strings.Contains(detail, rabbitmqadmin.EnvName(test.attribute)) || !strings.Contains(detail, test.says) {
			t.Errorf("%s: %v", name, diags[0])
		}
		if strings.Contains(detail, "topsecret") {
			t.Errorf("%s: what may be a secret is repeated: %s", name, detail)
		}
	}
}

func TestConfigurationThatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	cert, _ := newAuthority(t).pair("client")
	for name, model := range map[string]rabbitMQModel{
		"endpoints":       {Endpoints: types.ListUnknown(types.StringType)},
		"one endpoint":    {Endpoints: types.ListValueMust(types.StringType, []attr.Value{types.StringUnknown()})},
		"username":        {Username: types.StringUnknown()},
		"headers":         {Headers: types.MapUnknown(types.StringType)},
		"one header":      {Headers: types.MapValueMust(types.StringType, map[string]attr.Value{"X": types.StringUnknown()})},
		"insecure":        {Insecure: types.BoolUnknown()},
		"max_retries":     {MaxRetries: types.Int64Unknown()},
		"request_timeout": {RequestTimeout: types.StringUnknown()},
		"client_key":      {ClientCert: types.StringValue(cert), ClientKey: types.StringUnknown()},
	} {
		if _, diags, unknown := configOf(t, model, nil); !unknown || diags.HasError() {
			t.Errorf("%s: unknown %v, %v", name, unknown, diags)
		}
	}
}

// TestEndpointsThatAreWrong are refused by the client, of the attribute that they are in, and no password is repeated.
func TestEndpointsThatAreWrong(t *testing.T) {
	t.Parallel()
	good := rabbitmqadmin.Config{Endpoints: []string{"http://localhost:15672"}, Username: "user", Password: "p"}
	for name, test := range map[string]struct {
		adjust    func(*rabbitmqadmin.Config)
		attribute string
		says      string
	}{
		"credentials":           {func(c *rabbitmqadmin.Config) { c.Endpoints = []string{"http://admin:topsecret@host"} }, "endpoints", `"http://host" has credentials in it`},
		"a broken URL":          {func(c *rabbitmqadmin.Config) { c.Endpoints = []string{"http://admin:top%secret@host"} }, "endpoints", "is not a URL"},
		"no scheme":             {func(c *rabbitmqadmin.Config) { c.Endpoints = []string{"admin:topsecret@host:15672"} }, "endpoints", "has to begin with http://"},
		"a token in the query":  {func(c *rabbitmqadmin.Config) { c.Endpoints = []string{"http://host/?token=topsecret"} }, "endpoints", "a query or a fragment"},
		"another scheme":        {func(c *rabbitmqadmin.Config) { c.Endpoints = []string{"amqp://host"} }, "endpoints", "has to begin with http:// or https://"},
		"AMQP with credentials": {func(c *rabbitmqadmin.Config) { c.AMQPEndpoints = []string{"amqp://admin:topsecret@host"} }, "amqp_endpoints", "has credentials in it"},
		"AMQP with a vhost":     {func(c *rabbitmqadmin.Config) { c.AMQPEndpoints = []string{"amqp://host/shop"} }, "amqp_endpoints", "names a vhost"},
		"AMQP over HTTP":        {func(c *rabbitmqadmin.Config) { c.AMQPEndpoints = []string{"http://host"} }, "amqp_endpoints", "has to begin with amqp://"},
		"a header's name":       {func(c *rabbitmqadmin.Config) { c.Headers = map[string][]string{"X Y": {"topsecret"}} }, "headers", `header "X Y"`},
		"a header's value":      {func(c *rabbitmqadmin.Config) { c.Headers = map[string][]string{"X": {"topsecret\n"}} }, "headers", "a newline at the end of a file"},
		"a colon in the user":   {func(c *rabbitmqadmin.Config) { c.Username = "a:b" }, "username", "a colon in it"},
	} {
		cfg := good
		test.adjust(&cfg)
		var diags diag.Diagnostics
		src := source{ctx: t.Context(), diags: &diags, who: "username"}
		if client := src.client(cfg); client != nil || len(diags) != 1 {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		detail := diags[0].Detail()
		if !strings.Contains(detail, "rabbitmq."+test.attribute+" ") || !strings.Contains(detail, test.says) || strings.Contains(detail, "topsecret") {
			t.Errorf("%s: %s", name, detail)
		}
	}
}

// TestEveryAttributeNamesItsVariable keeps documentation and code together: each attribute is read from the variable
// that its description names.
func TestEveryAttributeNamesItsVariable(t *testing.T) {
	t.Parallel()
	served := &redeliverProvider{version: "test", getenv: func(string) string { return "" }}
	server, err := providerserver.NewProtocol6WithError(served)()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	var diags diag.Diagnostics
	rt := newRuntime(types.StringNull(), types.StringNull())
	diags.Append(rt.configureRabbitMQ(t.Context(), types.ObjectNull(nil), func(name string) string { asked[name] = true; return "" }, "test")...)
	if diags.HasError() {
		t.Fatal(diags)
	}
	for _, outer := range resp.Provider.Block.Attributes {
		if outer.Name != "rabbitmq" {
			continue // sqs is configured by the variables of the AWS SDK
		}
		for _, a := range outer.NestedType.Attributes {
			name := rabbitmqadmin.EnvName(a.Name)
			if !strings.Contains(a.Description, "`"+name+"`") || !asked[name] {
				t.Errorf("%s: %s is not named in its description, or not read", a.Name, name)
			}
			delete(asked, name)
			secret := slices.Contains([]string{"password", "token", "client_key", "headers", "http_proxy"}, a.Name)
			if a.Sensitive != secret {
				t.Errorf("%s: sensitive is %v", a.Name, a.Sensitive)
			}
		}
	}
	if len(asked) > 0 {
		t.Errorf("read and not documented: %v", slices.Sorted(maps.Keys(asked)))
	}
}
