package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/redeliver/terraform-provider-redeliver/internal/rabbitmqadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

// envPrefix starts the name of every attribute's environment variable:
// endpoints is read from REDELIVER_RABBITMQ_ENDPOINTS.
const envPrefix = "REDELIVER_RABBITMQ_"

func envName(attribute string) string { return envPrefix + strings.ToUpper(attribute) }

type rabbitMQModel struct {
	Endpoints      types.List   `tfsdk:"endpoints"`
	AMQPEndpoints  types.List   `tfsdk:"amqp_endpoints"`
	Username       types.String `tfsdk:"username"`
	Password       types.String `tfsdk:"password"`
	VHost          types.String `tfsdk:"vhost"`
	CACert         types.String `tfsdk:"ca_cert"`
	ClientCert     types.String `tfsdk:"client_cert"`
	ClientKey      types.String `tfsdk:"client_key"`
	Insecure       types.Bool   `tfsdk:"insecure"`
	Headers        types.Map    `tfsdk:"headers"`
	RequestTimeout types.String `tfsdk:"request_timeout"`
	MaxRetries     types.Int64  `tfsdk:"max_retries"`
}

func rabbitMQSchema() schema.Attribute {
	env := func(attribute, text string) string {
		return text + " Environment variable: `" + envName(attribute) + "`."
	}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "How to reach RabbitMQ. Every attribute can come from the environment instead; what the configuration says comes first. " +
			"A configuration without RabbitMQ resources needs none of it.",
		Attributes: map[string]schema.Attribute{
			"endpoints": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: env("endpoints", "URLs of the management API, such as `https://rabbit.example.com:15671`; a path prefix is kept. "+
					"Where several are given, the next one is used when one cannot be reached. In the environment they are separated by commas."),
			},
			"amqp_endpoints": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: env("amqp_endpoints", "AMQP addresses of the same broker, such as `amqps://rabbit.example.com:5671`, without credentials. Optional: "+
					"with them, a queue's depth is known exactly and at once before it is deleted; without them the broker's statistics are waited for, about 7 seconds in which the queue's bindings are away "+
					"and what is published to its exchanges is not routed to it."),
			},
			"username": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("username", "The user, who needs the `management` tag and permissions in the vhost."),
			},
			"password": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: env("password", "The user's password."),
			},
			"vhost": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("vhost", "The virtual host of resources that name none. Defaults to `/`."),
			},
			"ca_cert": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("ca_cert", "Certificates, in PEM, of the authorities that may have signed the broker's certificate: the text, or a file's path. Defaults to the system's."),
			},
			"client_cert": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: env("client_cert", "A client certificate in PEM: the text, or a file's path. Goes with `client_key`."),
			},
			"client_key": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: env("client_key", "The client certificate's key in PEM: the text, or a file's path."),
			},
			"insecure": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: env("insecure", "Accept any certificate the broker shows. Defaults to `false`."),
			},
			"headers": schema.MapAttribute{
				Optional: true, Sensitive: true, ElementType: types.StringType,
				MarkdownDescription: env("headers", "HTTP headers sent with every request, such as those a proxy asks for. In the environment: a JSON object."),
			},
			"request_timeout": schema.StringAttribute{
				Optional: true, Validators: durationText(),
				MarkdownDescription: env("request_timeout", "How long one request may take. Defaults to `"+topology.FormatDuration(rabbitmqadmin.DefaultRequestTimeout)+"`."),
			},
			"max_retries": schema.Int64Attribute{
				Optional: true,
				MarkdownDescription: env("max_retries", fmt.Sprintf("How often a request is sent again after a connection error, a 429 or a 5xx answer, "+
					"with growing pauses; `0` is never. Defaults to `%d`.", rabbitmqadmin.DefaultMaxRetries)),
			},
		},
	}
}

// configureRabbitMQ reads the configuration and the environment. With a value
// that is not known yet the client stays away and planning goes on without it.
func (rt *runtime) configureRabbitMQ(ctx context.Context, object types.Object, getenv func(string) string, version string) diag.Diagnostics {
	var diags diag.Diagnostics
	if object.IsUnknown() {
		rt.rabbitMQ.unknown = true
		rt.vhost = types.StringUnknown()
		return diags
	}
	model := rabbitMQModel{}
	if !object.IsNull() {
		if diags.Append(object.As(ctx, &model, basetypes.ObjectAsOptions{})...); diags.HasError() {
			return diags
		}
	}
	src := source{ctx: ctx, getenv: getenv, diags: &diags}
	cfg := src.config(model)
	cfg.UserAgent = "terraform-provider-redeliver/" + version
	cfg.Logf = func(ctx context.Context, msg string, fields map[string]any) { tflog.Debug(ctx, msg, fields) }
	if model.VHost.IsUnknown() {
		rt.vhost = types.StringUnknown()
	} else if vhost := src.text("vhost", model.VHost); vhost != "" {
		rt.vhost = types.StringValue(vhost)
	}
	if diags.HasError() || src.unknown {
		rt.rabbitMQ.unknown = src.unknown
		return diags
	}
	if len(cfg.Endpoints) == 0 {
		return diags // said when a RabbitMQ resource needs it
	}
	if cfg.Username == "" {
		src.fail("username", "no user is named, and the provider assumes none")
		return diags
	}
	client := src.client(cfg)
	if client == nil {
		return diags
	}
	rt.rabbitMQ.client = client
	rt.rabbitMQ.unreachable = src.ping(client)
	return diags
}

// config is what the client needs, the default vhost aside, which is none of its business.
func (s *source) config(model rabbitMQModel) rabbitmqadmin.Config {
	cfg := rabbitmqadmin.Config{
		Endpoints:      s.list("endpoints", model.Endpoints),
		AMQPEndpoints:  s.list("amqp_endpoints", model.AMQPEndpoints),
		Username:       s.text("username", model.Username),
		Password:       s.text("password", model.Password),
		Headers:        s.headers("headers", model.Headers),
		RequestTimeout: s.duration("request_timeout", model.RequestTimeout, rabbitmqadmin.DefaultRequestTimeout),
		MaxRetries:     s.number("max_retries", model.MaxRetries, rabbitmqadmin.DefaultMaxRetries),
		TLS:            s.tls(model),
	}
	if cfg.MaxRetries == 0 {
		cfg.MaxRetries = -1 // the client's zero value is its default
	}
	return cfg
}

// client makes the client. What it refuses is said of the attribute without which it would not.
func (s *source) client(cfg rabbitmqadmin.Config) *rabbitmqadmin.Client {
	endpoints := rabbitmqadmin.Config{Endpoints: cfg.Endpoints}
	amqp := endpoints
	amqp.AMQPEndpoints = cfg.AMQPEndpoints
	headers := amqp
	headers.Headers = cfg.Headers
	for _, part := range []struct {
		attribute string
		cfg       rabbitmqadmin.Config
	}{{"endpoints", endpoints}, {"amqp_endpoints", amqp}, {"headers", headers}} {
		if _, err := rabbitmqadmin.New(part.cfg); err != nil {
			s.fail(part.attribute, err.Error())
			return nil
		}
	}
	client, err := rabbitmqadmin.New(cfg)
	if err != nil {
		s.fail("username", err.Error())
		return nil
	}
	return client
}

// ping asks the broker who it is, so that what is wrong with the configuration is said here, once. A broker that does
// not answer, which it returns, may be one that this very configuration is about to start: that is said by the first
// resource that needs it.
func (s *source) ping(client *rabbitmqadmin.Client) (unreachable error) {
	_, err := client.Ping(s.ctx)
	var answer *rabbitmqadmin.Error
	switch {
	case errors.Is(err, rabbitmqadmin.ErrCredentials), errors.Is(err, rabbitmqadmin.ErrPermission):
		s.fail("username", "it was refused with this password: "+err.Error())
	case errors.As(err, &answer) && answer.Status != 0 && answer.Status != http.StatusTooManyRequests && answer.Status < http.StatusInternalServerError:
		s.fail("endpoints", err.Error())
	default:
		return err
	}
	return nil
}

// whichAttribute says where to look when no broker answered.
func whichAttribute(err error) string {
	var unreachable *rabbitmqadmin.UnreachableError
	if !errors.As(err, &unreachable) {
		return ""
	}
	attribute := "endpoints"
	if len(unreachable.Endpoints) > 0 && strings.HasPrefix(unreachable.Endpoints[0], "amqp") {
		attribute = "amqp_endpoints"
	}
	return fmt.Sprintf("\nThe addresses are the provider's rabbitmq.%s (or the environment variable %s).", attribute, envName(attribute))
}

// source reads attributes from the configuration or, where it leaves them out,
// from the environment, and collects what is wrong with them.
type source struct {
	ctx    context.Context //nolint:containedctx // it lives as long as one call of Configure
	getenv func(string) string
	diags  *diag.Diagnostics
	// unknown is set when any attribute is not known yet.
	unknown bool
}

func (s *source) fail(attribute, why string) {
	s.diags.AddAttributeError(path.Root("rabbitmq").AtName(attribute), "Invalid RabbitMQ configuration",
		fmt.Sprintf("rabbitmq.%s (or the environment variable %s): %s.", attribute, envName(attribute), why))
}

func (s *source) text(attribute string, value types.String) string {
	if value.IsUnknown() {
		s.unknown = true
		return ""
	}
	if !value.IsNull() {
		return value.ValueString()
	}
	return s.getenv(envName(attribute))
}

func (s *source) list(attribute string, value types.List) []string {
	if value.IsNull() {
		var list []string
		for _, item := range strings.Split(s.getenv(envName(attribute)), ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		return list
	}
	var items []types.String
	if value.IsUnknown() || value.ElementsAs(s.ctx, &items, true).HasError() {
		s.unknown = true
		return nil
	}
	var list []string
	for _, item := range items {
		if item.IsUnknown() {
			s.unknown = true
			return nil
		}
		list = append(list, item.ValueString())
	}
	return list
}

func (s *source) headers(attribute string, value types.Map) http.Header {
	headers := http.Header{}
	if value.IsNull() {
		text := s.getenv(envName(attribute))
		if text == "" {
			return nil
		}
		var fields map[string]string
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			s.fail(attribute, `it is not a JSON object of strings, such as {"X-Proxy-Token":"..."}`)
			return nil
		}
		for name, field := range fields {
			headers.Set(name, field)
		}
		return headers
	}
	if value.IsUnknown() {
		s.unknown = true
		return nil
	}
	for name, element := range value.Elements() {
		field, ok := element.(types.String)
		if !ok || field.IsUnknown() {
			s.unknown = true
			return nil
		}
		headers.Set(name, field.ValueString())
	}
	return headers
}

func (s *source) duration(attribute string, value types.String, otherwise time.Duration) time.Duration {
	text := s.text(attribute, value)
	if text == "" {
		return otherwise
	}
	d, err := topology.ParseDuration(text)
	if err == nil && d == 0 {
		err = errors.New("it is zero, and a request takes time")
	}
	if err != nil {
		s.fail(attribute, err.Error())
	}
	return d
}

func (s *source) number(attribute string, value types.Int64, otherwise int) int {
	if value.IsUnknown() {
		s.unknown = true
		return otherwise
	}
	n := int64(otherwise)
	if !value.IsNull() {
		n = value.ValueInt64()
	} else if text := s.getenv(envName(attribute)); text != "" {
		var err error
		if n, err = strconv.ParseInt(text, 10, 32); err != nil {
			s.fail(attribute, fmt.Sprintf("%q is not a number", text))
		}
	}
	if n < 0 || n > 100 {
		s.fail(attribute, fmt.Sprintf("%d is not between 0 and 100", n))
	}
	return int(n)
}

func (s *source) flag(attribute string, value types.Bool) bool {
	if value.IsUnknown() {
		s.unknown = true
		return false
	}
	if !value.IsNull() {
		return value.ValueBool()
	}
	text := s.getenv(envName(attribute))
	if text == "" {
		return false
	}
	flag, err := strconv.ParseBool(text)
	if err != nil {
		s.fail(attribute, fmt.Sprintf("%q is neither true nor false", text))
	}
	return flag
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
